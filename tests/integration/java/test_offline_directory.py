"""Kafka's tools and clients beside a host that has lost a log directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.host_process import host_process
from integration.java.jvm import Jvm

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]


@dataclass(frozen=True, slots=True)
class DamagedHost:
    """The tools against a host that has lost the directory ``one``."""

    tools: ConsoleTools
    folder: Path

    @property
    def stranded(self) -> list[str]:
        """The partitions of the topic ``split`` in the lost directory."""
        return sorted(path.name for path in (self.folder / "lost").glob("split-*"))


@pytest.fixture(scope="module")
def damaged(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagedHost]:
    folder = tmp_path_factory.mktemp("offline")
    directories = ",".join(str(folder / name) for name in ("one", "two"))
    with host_process(folder, f"log.dirs={directories}") as host:
        tools = ConsoleTools(jvm, host.bootstrap)
        tools.create_topic("split", 4)
        (folder / "one").rename(folder / "lost")
        tools.create_topic("noticed", 2)
        yield DamagedHost(tools, folder)


def test_kafka_topics_lists_the_unavailable_partitions(damaged: DamagedHost) -> None:
    lines = damaged.tools.succeed(
        "kafka-topics", "--describe", "--topic", "split", "--unavailable-partitions"
    )

    fields = [dict(part.split(": ", 1) for part in line.strip().split("\t")[:3]) for line in lines]
    assert [f"{row['Topic']}-{row['Partition']}" for row in fields] == damaged.stranded
    assert {row["Leader"] for row in fields} == {"none"}
    assert damaged.stranded


def test_kafka_log_dirs_shows_the_error_of_the_directory(damaged: DamagedHost) -> None:
    lines = damaged.tools.succeed("kafka-log-dirs", "--describe", "--broker-list", "1")

    rows = {Path(row["logDir"]).name: row for row in json.loads(lines[-1])["brokers"][0]["logDirs"]}
    assert rows["one"]["error"] == "org.apache.kafka.common.errors.KafkaStorageException"
    assert rows["two"]["error"] is None
    assert not rows["one"]["partitions"]


def test_a_producer_and_a_consumer_use_the_other_partitions(damaged: DamagedHost) -> None:
    lines = [f"line {number}" for number in range(20)]

    damaged.tools.produce_lines("noticed", lines)
    damaged.tools.produce_lines("split", lines)

    assert sorted(damaged.tools.consume_lines("noticed", 20, "--from-beginning")) == sorted(lines)
    assert sorted(damaged.tools.consume_lines("split", 20, "--from-beginning")) == sorted(lines)
