"""``odradek produce`` and ``odradek consume`` against a host, over the network."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.partitioner import partition_of
from odradek.client.producer import Producer
from odradek.client.resources import NewTopic
from odradek.testing import RunningHost
from odradek.testing.pushes import recorded
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from support.hosts import ThreadedHost, running_host
from support.tools import Done, Tool, command_line

Write = Callable[..., Done]
KEYS = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
END = ("--timeout-ms", "100", "--from-beginning")


def printing(*names: str) -> list[str]:
    return [text for name in names for text in ("--formatter-property", f"print.{name}=true")]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """One host for all tests of this file, which use different topics and groups."""
    with running_host(tmp_path_factory.mktemp("records") / "data") as started:
        yield started


@pytest.fixture(scope="module")
def admin(host: ThreadedHost) -> Iterator[AdminClient]:
    with AdminClient(host.bootstrap) as client:
        yield client


@pytest.fixture
def consume(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "consume", capsys)


@pytest.fixture
def produce(host: ThreadedHost, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a text to a topic."""

    def write(text: str, topic: str, *arguments: str) -> Done:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return command_line(host.bootstrap, "produce", capsys)("--topic", topic, *arguments)

    return write


def test_lines_are_written_and_read(produce: Write, consume: Tool) -> None:
    written = produce("a\nb\r\nlast line without an end", "lines")
    read = consume("--topic", "lines", *END)

    assert written == Done(0, [], [])
    assert read == Done(0, ["a", "b", "last line without an end"], ["Processed a total of 3 messages"])


def test_headers_keys_and_nulls_are_parsed_and_printed(produce: Write, consume: Tool) -> None:
    properties = ("parse.headers=true", "headers.delimiter=|", "null.marker=NULL")
    options = [text for each in properties for text in ("--reader-property", each)]

    produce("h1:v1,h2:NULL|k:v\nNULL|NULL:NULL\n", "full", *KEYS, *options)

    shown = printing("partition", "offset", "headers", "key", "epoch")
    assert consume("--topic", "full", *END, *shown).out == [
        "Partition:0\tOffset:0\tEpoch:0\th1:v1,h2:null\tk\tv",
        "Partition:0\tOffset:1\tEpoch:0\tNO_HEADERS\tnull\tnull",
    ]
    separators = ("--formatter-property", "key.separator=|", "--formatter-property", "null.literal=-")
    assert consume("--topic", "full", *END, *printing("key"), *separators).out == ["k|v", "-|-"]
    (first, _) = consume("--topic", "full", *END, *printing("timestamp")).out
    assert first.startswith("CreateTime:1")


def test_the_old_names_of_the_properties_work(produce: Write, consume: Tool) -> None:
    produce("k:v\n", "old", "--property", "parse.key=true", "--property", "key.separator=:")

    assert consume("--topic", "old", *END, "--property", "print.key=true").out == ["k\tv"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("abc", "odradek produce: No key separator found on line number 2: 'abc'"),
        ("{", "odradek produce: line number 2 is not a record of odradek consume --json: "),
    ],
)
def test_a_line_that_cannot_be_parsed_is_named(produce: Write, line: str, message: str) -> None:
    good, options = ('{"value": "v"}', ["--json"]) if line == "{" else ("k:v", list(KEYS))

    done = produce(f"{good}\n{line}\n", "malformed", *options)

    assert (done.status, len(done.err)) == (1, 1)
    assert done.err[0].startswith(message)


def test_a_key_has_the_partition_of_the_java_producer(
    admin: AdminClient, produce: Write, consume: Tool
) -> None:
    admin.create_topics([NewTopic(name="keyed", partitions=5)])

    produce("".join(f"k{n}:v\n" for n in range(20)), "keyed", *KEYS)

    read = consume("--topic", "keyed", *END, *printing("partition", "key"))
    expected = [f"Partition:{partition_of(b'k%d' % n, 5)}\tk{n}\tv" for n in range(20)]
    assert sorted(read.out) == sorted(expected)


def test_json_copies_records_exactly(admin: AdminClient, produce: Write, consume: Tool) -> None:
    admin.create_topics([NewTopic(name=name, partitions=2) for name in ("original", "copy")])
    record = Record(b"k\xff", None, 1234, (("h", b"\x00\xfe"), ("n", None)))
    Producer(admin).send({("original", 1): [record, Record(None, "ü".encode(), 5678)]})

    lines = consume("--topic", "original", *END, "--json").out
    produce("\n".join(lines), "copy", "--json")

    assert json.loads(lines[0]) == {
        "topic": "original",
        "partition": 1,
        "offset": 0,
        "timestamp_ms": 1234,
        "timestamp_type": "CreateTime",
        "leader_epoch": 0,
        "headers": [{"key": "h", "value": {"base64": "AP4="}}, {"key": "n", "value": None}],
        "key": {"base64": "a/8="},
        "value": None,
    }
    copied = [line.replace('"copy"', '"original"') for line in consume("--topic", "copy", *END, "--json").out]
    assert copied == lines


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(produce: Write, consume: Tool, codec: str) -> None:
    lines = [f"line {n}" for n in range(3000)]

    written = produce("\n".join(lines), f"in-{codec}", "--compression-codec", codec)

    assert written.status == 0
    assert consume("--topic", f"in-{codec}", *END).out == lines


def test_reading_starts_at_the_end_by_default(produce: Write, consume: Tool) -> None:
    produce("a\n", "ended")

    assert consume("--topic", "ended", "--timeout-ms", "50") == Done(
        0, [], ["Processed a total of 0 messages"]
    )


def test_a_partition_is_read_from_an_offset(admin: AdminClient, consume: Tool) -> None:
    admin.create_topics([NewTopic(name="offsets", partitions=2)])
    Producer(admin).send({("offsets", 1): [Record(None, b"%d" % n) for n in range(5)]})
    partition = ("--topic", "offsets", "--partition", "1", "--timeout-ms", "50")

    assert consume(*partition, "--offset", "3").out == ["3", "4"]
    assert consume(*partition, "--offset", "earliest", "--max-messages", "2").out == ["0", "1"]
    assert consume(*partition, "--offset", "9").err[0] == "WARN: offsets-1 has no offset 9: using 5"


def test_a_group_resumes_after_the_last_record(admin: AdminClient, produce: Write, consume: Tool) -> None:
    produce("a\nb\nc\n", "resumed")
    group = ("--topic", "resumed", "--group", "readers", *END)

    assert consume(*group, "--max-messages", "2").out == ["a", "b"]
    assert admin.offset_fetch("readers")["resumed", 0].offset == 2
    assert consume(*group).out == ["c"]
    assert consume(*group).out == []


def test_a_group_with_members_is_refused(host: ThreadedHost, produce: Write, consume: Tool) -> None:
    produce("a\n", "owned")
    settings = {"bootstrap.servers": host.bootstrap, "group.id": "owners", "auto.offset.reset": "earliest"}
    owner = confluent_kafka.Consumer(settings)
    owner.subscribe(["owned"])
    assert owner.poll(30) is not None

    done = consume("--topic", "owned", "--group", "owners", *END)

    owner.close()
    assert (done.status, done.out) == (1, [])
    assert "group owners has 1 members, and this command does not join groups" in done.err[0]


def test_topics_are_chosen_by_a_pattern(produce: Write, consume: Tool) -> None:
    produce("1\n", "many-1")
    produce("2\n", "many-2")

    assert sorted(consume("--include", "many-.", *END).out) == ["1", "2"]
    assert "no topic matches --include never-." in consume("--include", "never-.", *END).err[0]


def test_aborted_transactions_are_left_out(host: ThreadedHost, consume: Tool) -> None:
    settings = {"bootstrap.servers": host.bootstrap, "transactional.id": "t"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    for value, end in (
        ("aborted", producer.abort_transaction),
        ("committed", producer.commit_transaction),
        ("aborted too", producer.abort_transaction),
        ("committed too", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce("transactions", value)
        producer.flush(30)
        end(30)

    committed = consume("--topic", "transactions", *END, "--isolation-level", "read_committed")
    everything = consume("--topic", "transactions", *END)

    assert committed.out == ["committed", "committed too"]
    assert everything.out == ["aborted", "committed", "aborted too", "committed too"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "exactly one of --topic and --include must be specified"),
        (("--topic", "a", "--include", "b"), "exactly one of --topic and --include must be specified"),
        (("--topic", "a", "--offset", "1"), "--partition must be specified with --offset"),
        (("--include", "a", "--partition", "1"), "--topic must be specified with --partition"),
        (
            ("--topic", "a", "--partition", "0", "--offset", "1", "--from-beginning"),
            "option --from-beginning can't be used with --offset",
        ),
        (
            ("--topic", "a", "--partition", "0", "--group", "g"),
            "option --group can't be used with --partition",
        ),
        (
            ("--topic", "a", "--partition", "0", "--offset", "-2"),
            "expected earliest, latest or a number that is not negative, found '-2'",
        ),
        (("--topic", "a", "--formatter-property", "print.all=true"), "unknown property print.all"),
    ],
)
def test_a_wrong_command_line_is_one_line(consume: Tool, arguments: tuple[str, ...], message: str) -> None:
    done = consume(*arguments)

    assert (done.status, done.out, len(done.err)) == (2, [], 1)
    assert message in done.err[0]


def test_a_topic_that_does_not_exist_is_named(consume: Tool) -> None:
    done = consume("--topic", "never")

    assert (done.status, done.out) == (1, [])
    assert done.err == ["Error while executing consume command : never: UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.ci
def test_a_reader_that_leaves_is_no_traceback(host: ThreadedHost, produce: Write) -> None:
    produce("x\n" * 50_000, "long")
    arguments = f"--bootstrap-server {host.bootstrap} --topic long --from-beginning"
    command = f"{sys.executable} -m odradek consume {arguments}"

    done = subprocess.run(
        ["sh", "-c", f"{command} | head -n 1"], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "x\n"
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Processed a total of ")


@pytest.mark.ci
def test_a_group_does_not_move_past_records_that_cannot_be_printed(
    host: ThreadedHost, admin: AdminClient, produce: Write
) -> None:
    produce("x\n", "unprinted")
    arguments = f"--bootstrap-server {host.bootstrap} --topic unprinted --group cut {' '.join(END)}"

    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m odradek consume {arguments} > /dev/full"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["odradek: cannot write to stdout: No space left on device"]
    assert admin.offset_fetch("cut") == {}


@pytest.mark.ci
def test_an_interrupted_group_resumes_after_the_printed_records(
    host: ThreadedHost, admin: AdminClient, produce: Write
) -> None:
    produce("x\ny\n", "interrupted")
    command = [sys.executable, "-m", "odradek", "consume", "--bootstrap-server", host.bootstrap]
    options = ["--topic", "interrupted", "--group", "stopped", "--from-beginning"]

    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == [b"x\n", b"y\n"]
        process.send_signal(signal.SIGINT)
        status = process.wait(60)

    assert status == 130
    assert admin.offset_fetch("stopped")["interrupted", 0].offset == 2


def test_pushes_are_decoded(
    odradek_hosts: Callable[..., RunningHost], capsys: pytest.CaptureFixture[str]
) -> None:
    host = odradek_hosts(telemetry_durability="log", telemetry_topic_partitions=1)
    host.subscribe("org.apache.kafka.", interval_ms=1_000)
    with Connection(*host.address, "me", 10) as connection:
        given = connection.send(GetTelemetrySubscriptionsRequest())
        (push, *_) = recorded("java-producer")
        connection.send(
            PushTelemetryRequest(
                client_instance_id=given.client_instance_id,
                subscription_id=given.subscription_id,
                compression_type=push.record.codec,
                metrics=push.sent,
            )
        )

    done = command_line(host.bootstrap, "consume", capsys)(
        "--topic", "__client_telemetry", "--telemetry", *END
    )

    (line,) = done.out
    row: dict[str, Any] = json.loads(line)
    assert (row["client_id"], row["terminating"], row["partition"], row["offset"]) == ("me", False, 0, 0)
    names = {point["name"] for point in row["metrics"]}
    assert "org.apache.kafka.producer.connection.creation.total" in names
    assert {"value", "unit", "kind", "delta", "labels", "time_ms"} < row["metrics"][0].keys()


def test_a_record_that_is_no_push_is_named(produce: Write, consume: Tool) -> None:
    produce("x\n", "no-push")
    telemetry = ("--topic", "no-push", "--telemetry", *END)

    assert "no-push-0, offset 0: not a push" in consume(*telemetry).err[1]
    assert consume(*telemetry, "--skip-message-on-error").out == []


@pytest.mark.parametrize(
    ("options", "terminal", "told"),
    [
        ([], True, True),
        ([], False, False),
        (["--from-beginning"], True, False),
        (["--partition", "0", "--offset", "earliest"], True, False),
        (["--group", "new"], True, True),
        (["--group", "known"], True, False),
    ],
)
def test_a_terminal_is_told_that_only_new_records_are_printed(
    produce: Write,
    consume: Tool,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    terminal: bool,
    told: bool,
) -> None:
    produce("stored\n", "waited")
    consume("--topic", "waited", "--timeout-ms", "100", "--group", "known")
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)

    done = consume("--topic", "waited", "--timeout-ms", "100", *options)

    line = "Waiting for new records; --from-beginning prints the stored ones too"
    assert (line in done.err) is told
