"""Tools that write, read and count records; the expectations hold for Apache Kafka 4.3.1 too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
KEYS = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
SHOWN = [
    argument
    for name in ("print.partition", "print.offset", "print.key")
    for argument in ("--formatter-property", f"{name}=true")
]


def numbered(count: int) -> list[str]:
    return [f"k{number}:v{number}" for number in range(count)]


def test_lines_are_read_with_key_partition_and_offset(tools: ConsoleTools) -> None:
    tools.create_topic("lines")
    tools.produce_lines("lines", numbered(10), *KEYS)

    consumed = tools.consume_lines("lines", 10, "--partition", "0", "--offset", "earliest", *SHOWN)

    assert consumed == [f"Partition:0\tOffset:{number}\tk{number}\tv{number}" for number in range(10)]


def test_a_consumer_can_start_at_an_offset(tools: ConsoleTools) -> None:
    tools.create_topic("from-offset")
    tools.produce_lines("from-offset", numbered(10))

    consumed = tools.consume_lines("from-offset", 3, "--partition", "0", "--offset", "7")

    assert consumed == ["k7:v7", "k8:v8", "k9:v9"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_lines_are_read(tools: ConsoleTools, codec: str) -> None:
    topic = f"codec-{codec}"
    tools.create_topic(topic)
    tools.produce_lines(topic, numbered(200), "--compression-codec", codec)

    consumed = tools.consume_lines(topic, 200, "--partition", "0", "--offset", "earliest")

    assert consumed == numbered(200)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_a_topic_and_resumes(tools: ConsoleTools, protocol: str) -> None:
    topic = f"resumed-{protocol}"
    group = ("--group", topic, "--from-beginning", "--command-property", f"group.protocol={protocol}")
    tools.create_topic(topic)
    tools.produce_lines(topic, numbered(10))

    first = tools.consume_lines(topic, 4, *group)

    assert [line for line in first if ":" in line] == numbered(4)
    assert tools.consume_lines(topic, 6, *group) == numbered(10)[4:]


def test_a_topic_is_created_by_the_first_line(tools: ConsoleTools) -> None:
    tools.produce_lines("made-by-a-producer", ["hello"])

    assert "made-by-a-producer" in tools.succeed("kafka-topics", "--list")


def test_offsets_are_found_by_timestamp(tools: ConsoleTools) -> None:
    tools.create_topic("counted", 2)
    tools.produce_lines("counted", ["a", "b", "c"])

    latest = tools.succeed("kafka-get-offsets", "--topic", "counted")

    assert [line.rpartition(":")[0] for line in latest] == ["counted:0", "counted:1"]
    assert sum(int(line.rpartition(":")[2]) for line in latest) == 3
    earliest = tools.succeed("kafka-get-offsets", "--topic-partitions", "counted:0-2", "--time", "earliest")
    assert earliest == ["counted:0:0", "counted:1:0"]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("max-timestamp", [":0:0"]),
        ("earliest-local", [":0:0"]),
        ("latest-tiered", []),
        ("-1", [":0:1"]),
        ("0", [":0:0"]),
    ],
)
def test_every_kind_of_offset_is_answered(tools: ConsoleTools, time: str, expected: list[str]) -> None:
    topic = f"kind-{time.strip('-')}"
    tools.create_topic(topic)
    tools.produce_lines(topic, ["a"])

    shown = tools.succeed("kafka-get-offsets", "--topic", topic, "--time", time)

    assert shown == [f"{topic}{line}" for line in expected]


def test_deleted_records_are_gone(tools: ConsoleTools, tmp_path: Path) -> None:
    tools.create_topic("cut")
    tools.produce_lines("cut", numbered(10))
    wanted = {"partitions": [{"topic": "cut", "partition": 0, "offset": 3}], "version": 1}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps(wanted))

    deleted = tools.succeed("kafka-delete-records", "--offset-json-file", str(offsets))

    assert deleted[-1] == "partition: cut-0\tlow_watermark: 3"
    assert tools.succeed("kafka-get-offsets", "--topic", "cut", "--time", "earliest") == ["cut:0:3"]
    consumed = tools.consume_lines("cut", 7, "--partition", "0", "--offset", "earliest")
    assert consumed == numbered(10)[3:]


def test_records_cannot_be_deleted_beyond_the_end(tools: ConsoleTools, tmp_path: Path) -> None:
    tools.create_topic("short")
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"partitions": [{"topic": "short", "partition": 0, "offset": 1}]}))

    deleted = tools.run("kafka-delete-records", "--offset-json-file", str(offsets))

    assert "OffsetOutOfRangeException" in deleted.said
