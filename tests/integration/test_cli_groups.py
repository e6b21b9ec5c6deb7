"""``odradek groups`` against a host with librdkafka consumers, over the network."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from support.hosts import ThreadedHost, running_host
from support.tools import Tool, command_line

kafka: Any = pytest.importorskip("confluent_kafka")
FIRST_MS = 1_700_000_000_000
RECORDS = 10
FAILING = "Error: Executing consumer group command failed due to "


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """A topic of two partitions with ten records each, one per second; groups have no initial delay."""
    data = tmp_path_factory.mktemp("groups") / "data"
    with running_host(data, "group.initial.rebalance.delay.ms=0") as started:
        with AdminClient(started.bootstrap, timeout_s=10) as admin:
            admin.create_topics(
                [NewTopic(name="orders", partitions=2, configs={"retention.ms": "-1"}), NewTopic(name="idle")]
            )
        producer = kafka.Producer({"bootstrap.servers": started.bootstrap})
        for number in range(RECORDS):
            for partition in (0, 1):
                at_ms = FIRST_MS + number * 1000
                producer.produce("orders", value=b"x", partition=partition, timestamp=at_ms)
        assert producer.flush(10) == 0
        yield started


@pytest.fixture
def tool(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "groups", capsys)


@contextlib.contextmanager
def consuming(host: ThreadedHost, group: str, **settings: object) -> Iterator[None]:
    """A member that has read and committed every record, and stays in the group."""
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": host.bootstrap,
            "group.id": group,
            "client.id": f"client-{group}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    consumer.subscribe(["orders"])
    deadline_s, read = time.monotonic() + 20, 0
    while read < 2 * RECORDS and time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        read += message is not None and message.error() is None
    assert read == 2 * RECORDS
    consumer.commit(asynchronous=False)
    try:
        yield
    finally:
        consumer.close()


@pytest.mark.parametrize(("protocol", "type_name"), [("classic", "Classic"), ("consumer", "Consumer")])
def test_a_group_with_a_member_of_either_protocol_is_described(
    host: ThreadedHost, tool: Tool, protocol: str, type_name: str
) -> None:
    name = f"live-{protocol}"
    with consuming(host, name, group_protocol=protocol):
        listed = tool("--list", "--state", "--type")
        offsets = tool("--describe", "--group", name)
        members = tool("--describe", "--group", name, "--members", "--verbose")
        state = tool("--describe", "--group", name, "--state")
        deleted = tool("--delete", "--group", name)
        reset = tool("--reset-offsets", "--group", name, "--to-earliest", "--topic", "orders", "--execute")

    assert [name, type_name, "Stable"] in [line.split() for line in listed.out]
    assert [line.split()[:6] for line in offsets.out[2:]] == [
        [name, "orders", "0", "10", "10", "0"],
        [name, "orders", "1", "10", "10", "0"],
    ]
    assert offsets.out[2].split()[-2:] == ["/127.0.0.1", f"client-{name}"]
    (row,) = members.out[2:]
    assert row.split()[4] == "2"
    assert "orders:0,1" in row
    assert state.out[2].split()[1:3] == [host.bootstrap, "(1)"]
    assert state.out[2].split()[-2:] == ["Stable", "1"]
    assert (deleted.status, deleted.err) == (1, [f"{FAILING}{name}: NON_EMPTY_GROUP"])
    assert reset.status == 1
    assert f"group '{name}' is Stable" in reset.err[0]


def test_the_lag_in_seconds_is_the_age_of_the_next_record(tool: Tool) -> None:
    """Records are a second apart; the search is exact to a second."""
    tool("--reset-offsets", "--group", "timed", "--to-offset", "4", "--topic", "orders:0", "--execute")
    tool("--reset-offsets", "--group", "timed", "--to-latest", "--topic", "orders:1", "--execute")
    before_s = time.time()
    described = tool("--describe", "--group", "timed", "--time", "--json")
    heading = tool("--describe", "--group", "timed", "--time").out[1].split()
    tool("--delete", "--group", "timed")

    behind, read = map(json.loads, described.out)
    assert behind["lag"] == 6
    assert behind["lag_seconds"] == pytest.approx(before_s - FIRST_MS / 1000 - 4, abs=10)
    assert (read["lag"], read["lag_seconds"]) == (0, 0)
    assert heading[3:7] == ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LAG-SECONDS"]


def test_a_group_is_created_described_and_deleted(tool: Tool) -> None:
    made = tool("--reset-offsets", "--group", "made", "--to-offset", "4", "--topic", "orders", "--execute")
    described = tool("--describe", "--group", "made")
    forgotten = tool("--delete-offsets", "--group", "made", "--topic", "orders:1")
    after = tool("--describe", "--group", "made")
    deleted = tool("--delete", "--group", "made")
    gone = tool("--describe", "--group", "made")

    assert [line.split() for line in made.out[2:]] == [
        ["made", "orders", "0", "4"],
        ["made", "orders", "1", "4"],
    ]
    assert [line.split()[1:6] for line in described.out[2:]] == [
        ["orders", "0", "4", "10", "6"],
        ["orders", "1", "4", "10", "6"],
    ]
    assert described.err == ["Consumer group 'made' has no active members."]
    assert forgotten.out[-1].split() == ["orders", "1", "Successful"]
    assert [line.split()[2] for line in after.out[2:]] == ["0"]
    assert deleted.out == ["Deletion of requested consumer groups ('made') was successful."]
    assert (gone.status, gone.out) == (1, [])
    assert gone.err[0].startswith(f"{FAILING}made: GROUP_ID_NOT_FOUND")


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 10]),
        (("--to-offset", "99"), [10, 10]),
        (("--shift-by", "-2"), [3, 3]),
        (("--shift-by", "-99"), [0, 0]),
        (("--to-current",), [5, 5]),
        (("--to-datetime", "2023-11-14T22:13:27.000"), [7, 7]),
        (("--to-datetime", "2023-11-14T23:13:20.500+01:00"), [1, 1]),
        (("--to-datetime", "2123-11-14T22:13:20.000"), [10, 10]),
        (("--by-duration", "PT1H"), [10, 10]),
        (("--by-duration", "P36500D"), [0, 0]),
    ],
)
def test_offsets_are_reset(tool: Tool, target: tuple[str, ...], offsets: list[int]) -> None:
    tool("--reset-offsets", "--group", "moved", "--to-offset", "5", "--topic", "orders", "--execute")

    done = tool("--reset-offsets", "--group", "moved", *target, "--all-topics", "--execute")

    described = tool("--describe", "--group", "moved")
    assert done.status == 0
    assert [int(line.split()[3]) for line in done.out[2:]] == offsets
    assert [int(line.split()[3]) for line in described.out[2:]] == offsets


def test_a_dry_run_changes_nothing(tool: Tool) -> None:
    tool("--reset-offsets", "--group", "dry", "--to-offset", "5", "--topic", "orders:0", "--execute")

    done = tool("--reset-offsets", "--group", "dry", "--to-latest", "--topic", "orders:0", "--dry-run")

    assert done.out[-1].split() == ["dry", "orders", "0", "10"]
    assert tool("--describe", "--group", "dry").out[-1].split()[3] == "5"


def test_offsets_are_exported_to_a_file_and_restored(tool: Tool, tmp_path: Path) -> None:
    groups = ("--group", "one", "--group", "two")
    tool("--reset-offsets", "--group", "one", "--to-offset", "3", "--topic", "orders", "--execute")
    tool("--reset-offsets", "--group", "two", "--to-offset", "7", "--topic", "orders:1", "--execute")
    kept = tool("--reset-offsets", *groups, "--to-current", "--all-topics", "--export", "--dry-run")
    file = tmp_path / "kept.csv"
    file.write_text("\n".join(kept.out))
    tool("--reset-offsets", *groups, "--to-latest", "--all-topics", "--execute")

    done = tool("--reset-offsets", *groups, "--from-file", str(file), "--execute")

    assert kept.out == ["one,orders,0,3", "one,orders,1,3", "two,orders,1,7"]
    assert done.status == 0
    assert [line.split()[3] for line in tool("--describe", "--group", "one").out[2:]] == ["3", "3"]
    assert [line.split()[3] for line in tool("--describe", "--group", "two").out[2:]] == ["7"]


def test_a_consumer_continues_at_the_reset_offsets(host: ThreadedHost, tool: Tool) -> None:
    tool("--reset-offsets", "--group", "again", "--to-offset", "8", "--topic", "orders:0", "--execute")
    consumer = kafka.Consumer({"bootstrap.servers": host.bootstrap, "group.id": "again"})
    consumer.subscribe(["orders"])

    message = consumer.poll(15)
    consumer.close()

    assert message is not None
    assert (message.error(), message.partition(), message.offset()) == (None, 0, 8)


def test_an_unknown_group_is_one_line_and_status_1(tool: Tool) -> None:
    partition = tool("--reset-offsets", "--group", "g", "--to-latest", "--topic", "orders:9", "--execute")
    topic = tool("--reset-offsets", "--group", "g", "--to-latest", "--topic", "nope", "--execute")
    offsets = tool("--delete-offsets", "--group", "nope", "--topic", "orders:0")

    assert (partition.status, partition.err) == (1, [f"{FAILING}orders-9: UNKNOWN_TOPIC_OR_PARTITION"])
    assert (topic.status, topic.err) == (1, [f"{FAILING}nope: UNKNOWN_TOPIC_OR_PARTITION"])
    assert (offsets.status, offsets.err) == (1, [f"{FAILING}nope: GROUP_ID_NOT_FOUND"])
