"""``odradek get-offsets`` and ``odradek delete-records`` against a host, over the network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.producer import Producer
from odradek.client.resources import NewTopic
from odradek.wire.record import Record
from support.hosts import ThreadedHost, running_host
from support.tools import Done, Tool, command_line


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(
        tmp_path_factory.mktemp("offsets") / "data", "telemetry.topic.internal=true"
    ) as started:
        with AdminClient(started.bootstrap) as admin:
            admin.create_topics([NewTopic(name="counted", partitions=3), NewTopic(name="other")])
            counts = {("counted", 0): 3, ("counted", 1): 2, ("other", 0): 1}
            records = {at: [Record(None, b"x", 1000 + n) for n in range(counts[at])] for at in counts}
            Producer(admin).send(records)
        yield started


@pytest.fixture
def offsets(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "get-offsets", capsys)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("--exclude-internal-topics",), ["counted:0:3", "counted:1:2", "counted:2:0", "other:0:1"]),
        (("--topic", "counted", "--partitions", "0,2"), ["counted:0:3", "counted:2:0"]),
        (
            ("--topic", "count.*,other", "--time", "earliest", "--partitions", "0"),
            ["counted:0:0", "other:0:0"],
        ),
        (("--topic-partitions", "counted:1,other"), ["counted:1:2", "other:0:1"]),
        (("--topic-partitions", "counted:0-2"), ["counted:0:3", "counted:1:2"]),
        (("--topic-partitions", ":1-", "--exclude-internal-topics"), ["counted:1:2", "counted:2:0"]),
        (("--topic-partitions", "counted:-1"), ["counted:0:3"]),
        (("--topic", "counted", "--time", "1001"), ["counted:0:1", "counted:1:1"]),
        (("--topic", "counted", "--time", "max-timestamp"), ["counted:0:2", "counted:1:1"]),
    ],
)
def test_offsets_of_partitions_are_shown(offsets: Tool, arguments: tuple[str, ...], lines: list[str]) -> None:
    assert offsets(*arguments) == Done(0, lines, [])


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--topic", "never"), 1, "Could not match any topic-partitions with the specified filters"),
        (("--topic", "a", "--topic-partitions", "a:0"), 2, "--topic-partitions can't be used with --topic"),
        (("--time", "soon"), 2, "malformed time argument soon; use -1 or latest / -2 or earliest"),
        (("--partitions", "0,x"), 2, "expected a comma-separated list of partition ids, found '0,x'"),
        (("--topic-partitions", "a:b"), 2, "invalid rule specification: a:b"),
    ],
)
def test_a_wrong_filter_is_one_line(
    offsets: Tool, arguments: tuple[str, ...], status: int, message: str
) -> None:
    done = offsets(*arguments)

    assert (done.status, done.out, len(done.err)) == (status, [], 1)
    assert message in done.err[0]


def test_records_are_deleted_up_to_an_offset(
    host: ThreadedHost, offsets: Tool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.create_topics([NewTopic(name="cut")])
        Producer(admin).send({("cut", 0): [Record(None, b"x")] * 5})
    delete = command_line(host.bootstrap, "delete-records", capsys)
    file = tmp_path / "offsets.json"
    file.write_text('{"partitions": [{"topic": "cut", "partition": 0, "offset": 3}], "version": 1}')

    done = delete("--offset-json-file", str(file))
    again = delete("--offset-json-file", str(file), "--json")

    assert done == Done(
        0,
        [
            "Executing records delete operation",
            "Records delete operation completed:",
            "partition: cut-0\tlow_watermark: 3",
        ],
        [],
    )
    assert [json.loads(line) for line in again.out] == [{"topic": "cut", "partition": 0, "low_watermark": 3}]
    assert offsets("--topic", "cut", "--time", "earliest").out == ["cut:0:3"]


def test_a_refused_deletion_is_named_and_the_others_are_done(
    host: ThreadedHost, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    delete = command_line(host.bootstrap, "delete-records", capsys)
    rows = [{"topic": "other", "partition": 0, "offset": 0}, {"topic": "other", "partition": 9, "offset": 1}]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": rows}))

    done = delete("--offset-json-file", str(file))

    assert done.status == 1
    assert done.out[2:] == ["partition: other-0\tlow_watermark: 0"]
    assert done.err == ["Error while executing delete records command : other-9: UNKNOWN_TOPIC_OR_PARTITION"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "is not valid JSON"),
        ('{"version": 1}', "expected an object with a list partitions"),
        ('{"version": 2, "partitions": []}', "expected version 1, found 2"),
        ('{"partitions": [{"topic": "a"}]}', "expected topic, partition, offset in each partition"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}, '
            '{"topic": "a", "partition": 0, "offset": 2}]}',
            "has a-0 more than once",
        ),
    ],
)
def test_an_invalid_file_is_one_line_with_its_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)

    done = command_line("h:1", "delete-records", capsys)("--offset-json-file", str(file))

    assert (done.status, done.out, len(done.err)) == (2, [], 1)
    assert str(file) in done.err[0]
    assert message in done.err[0]
