"""kafka-reassign-partitions moves partitions between the directories of a host."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.host_process import host_process
from integration.java.jvm import Jvm

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
REASSIGN = "kafka-reassign-partitions"
MOVE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class TwoDirectories:
    """The tools against a host with the log directories ``one`` and ``two``."""

    tools: ConsoleTools
    folder: Path

    def assignment(self, topic: str, directories: list[str], replicas: tuple[int, ...] = (1,)) -> str:
        """The file of an assignment of a topic's partitions."""
        partitions = [
            {
                "topic": topic,
                "partition": index,
                "replicas": list(replicas),
                "log_dirs": [str(self.folder / name) for name in [directory] * len(replicas)],
            }
            for index, directory in enumerate(directories)
        ]
        file = self.folder / f"{topic}.json"
        file.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return str(file)

    def verified(self, file: str) -> list[str]:
        """The output of ``--verify`` once no move is in progress."""
        deadline = time.monotonic() + MOVE_TIMEOUT_S
        while True:
            lines = self.tools.succeed(REASSIGN, "--verify", "--reassignment-json-file", file)
            if time.monotonic() > deadline or not any("in progress" in line for line in lines):
                return lines
            time.sleep(0.1)


@pytest.fixture(scope="module")
def two(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoDirectories]:
    folder = tmp_path_factory.mktemp("reassign")
    directories = ",".join(str(folder / name) for name in ("one", "two"))
    with host_process(folder, f"log.dirs={directories}") as host:
        yield TwoDirectories(ConsoleTools(jvm, host.bootstrap), folder)


def test_a_partition_moves_to_another_directory(two: TwoDirectories) -> None:
    two.tools.create_topic("moved", 2)
    two.tools.produce_lines("moved", ["a", "b", "c"])
    file = two.assignment("moved", ["two", "two"])

    executed = two.tools.succeed(REASSIGN, "--execute", "--reassignment-json-file", file)
    verified = two.verified(file)

    assert "Successfully started partition reassignments for moved-0,moved-1" in executed
    assert verified[:5] == [
        "Status of partition reassignment:",
        "Reassignment of partition moved-0 is completed.",
        "Reassignment of partition moved-1 is completed.",
        "Reassignment of replica moved-0-1 completed successfully.",
        "Reassignment of replica moved-1-1 completed successfully.",
    ]
    assert sorted(path.name for path in (two.folder / "two").glob("moved-*")) == ["moved-0", "moved-1"]
    assert not [*(two.folder / "one").glob("moved-*")]
    assert sorted(two.tools.consume_lines("moved", 3, "--from-beginning")) == ["a", "b", "c"]


def test_another_broker_is_refused(two: TwoDirectories) -> None:
    two.tools.create_topic("elsewhere")
    file = two.assignment("elsewhere", ["one"], (2,))

    refused = two.tools.run(REASSIGN, "--execute", "--reassignment-json-file", file)

    assert refused.status == 1
    assert "Unknown broker id 2" in refused.said


def test_an_unknown_directory_is_refused(two: TwoDirectories) -> None:
    two.tools.create_topic("lost")
    file = two.assignment("lost", ["three"])

    refused = two.tools.run(REASSIGN, "--execute", "--reassignment-json-file", file, "--timeout", "1000")

    assert "LogDirNotFoundException" in refused.said, refused.said


def test_nothing_is_listed_and_nothing_is_cancelled(two: TwoDirectories) -> None:
    two.tools.create_topic("stays")
    file = two.assignment("stays", ["one"])

    listed = two.tools.succeed(REASSIGN, "--list")
    cancelled = two.tools.succeed(REASSIGN, "--cancel", "--reassignment-json-file", file)

    assert listed == ["No partition reassignments found."]
    assert cancelled[0] == "None of the specified partition reassignments are active."
