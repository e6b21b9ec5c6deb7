"""kafka-consumer-groups.sh; the expectations hold for Apache Kafka 4.3.1 too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
GROUPS = "kafka-consumer-groups"
COMMITTED = 4
RECORDS = 10
PROTOCOLS = ["classic", "consumer"]


TOPIC = "read-by-groups"


@dataclass(frozen=True, slots=True)
class Groups:
    """The tool, and groups to describe: each has read four of the ten records of the topic."""

    tools: ConsoleTools

    def run(self, *args: str) -> list[str]:
        """The lines that are not empty."""
        return [line for line in self.tools.succeed(GROUPS, *args) if line]

    def cells(self, *args: str) -> list[list[str]]:
        """The table, a list of words per line."""
        return [line.split() for line in self.run(*args) if "has no active members" not in line]

    def make(self, name: str, protocol: str = "classic") -> None:
        options = ("--group", name, "--from-beginning", "--command-property", f"group.protocol={protocol}")
        self.tools.consume_lines(TOPIC, COMMITTED, *options)

    @contextmanager
    def member(self, name: str, protocol: str) -> Iterator[subprocess.Popen[str]]:
        """A console consumer that has read a line and therefore is in the group."""
        options = ("--topic", TOPIC, "--group", name, "--command-property", f"group.protocol={protocol}")
        with self.tools.started("kafka-console-consumer", *options, "--from-beginning") as consumer:
            assert consumer.stdout is not None
            while not consumer.stdout.readline().startswith("v"):
                assert consumer.poll() is None
            yield consumer


@pytest.fixture(scope="module")
def groups(tools: ConsoleTools) -> Groups:
    tools.create_topic(TOPIC)
    tools.produce_lines(TOPIC, [f"v{number}" for number in range(RECORDS)])
    return Groups(tools)


@pytest.fixture(scope="module", params=PROTOCOLS)
def used(request: pytest.FixtureRequest, groups: Groups) -> str:
    """A group whose only member has left; no test changes it."""
    name = f"used-{request.param}"
    groups.make(name, request.param)
    return name


def test_groups_are_listed_with_state_and_type(groups: Groups, used: str) -> None:
    plain, states, types = (
        groups.run("--list"),
        groups.cells("--list", "--state"),
        groups.cells("--list", "--type"),
    )

    assert used in plain
    assert states[0] == ["GROUP", "STATE"]
    assert [used, "Empty"] in states
    assert types[0] == ["GROUP", "TYPE"]
    assert [used, used.removeprefix("used-").capitalize()] in types


def test_an_empty_groups_offsets_are_described(groups: Groups, used: str) -> None:
    lines = groups.cells("--describe", "--group", used)

    heading = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert lines == [heading.split(), [used, TOPIC, "0", "4", "10", "6", "-", "-", "-"]]


def test_an_empty_groups_state_is_described(groups: Groups, used: str) -> None:
    lines = groups.cells("--describe", "--group", used, "--state")

    assert lines[0] == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert lines[1][-2:] == ["Empty", "0"]
    assert lines[1][1] == groups.tools.bootstrap


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_a_live_member_is_described_and_neither_deleted_nor_reset(
    groups: Groups, protocol: str
) -> None:
    name = f"alive-{protocol}"

    with groups.member(name, protocol):
        offsets = groups.cells("--describe", "--group", name)
        members = groups.cells("--describe", "--group", name, "--members", "--verbose")
        state = groups.cells("--describe", "--group", name, "--state")
        deleted = groups.tools.run(GROUPS, "--delete", "--group", name)
        reset = groups.tools.run(
            GROUPS, "--reset-offsets", "--group", name, "--all-topics", "--to-earliest", "--execute"
        )

    assert offsets[1][:3] == [name, TOPIC, "0"]
    assert offsets[1][7:] == ["/127.0.0.1", "console-consumer"]
    assert members[1][0] == name
    assert members[1][2:4] == ["/127.0.0.1", "console-consumer"]
    assert f"{TOPIC}(0)" in members[1] or f"{TOPIC}:0" in " ".join(members[1])
    assert state[1][-2:] == ["Stable", "1"]
    assert "GroupNotEmptyException" in deleted.said
    assert "current state is Stable" in reset.said


def test_a_reset_shows_the_new_offsets(groups: Groups) -> None:
    groups.make("tried")
    expected = {
        ("--to-earliest",): "0",
        ("--to-latest",): "10",
        ("--to-offset", "5"): "5",
        ("--shift-by", "-1"): "3",
        ("--to-datetime", "2020-01-01T00:00:00.000"): "0",
        ("--by-duration", "PT0S"): "10",
        ("--to-current",): "4",
    }

    found = {
        to: groups.cells("--reset-offsets", "--group", "tried", "--all-topics", *to, "--dry-run")[-2:]
        for to in expected
    }

    heading = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert found == {to: [heading, ["tried", TOPIC, "0", offset]] for to, offset in expected.items()}


def test_an_executed_reset_is_committed_and_exported(groups: Groups, used: str) -> None:
    name = f"{used}-reset"
    groups.make(name, used.removeprefix("used-"))

    executed = groups.run(
        "--reset-offsets",
        "--group",
        name,
        "--topic",
        f"{TOPIC}:0",
        "--to-offset",
        "7",
        "--execute",
        "--export",
    )

    assert executed == [f"{TOPIC},0,7"]
    assert groups.cells("--describe", "--group", name)[1][3] == "7"


def test_offsets_are_deleted(groups: Groups) -> None:
    groups.make("forgetful")

    deleted = groups.cells("--delete-offsets", "--group", "forgetful", "--topic", TOPIC)

    assert deleted[-1] == [TOPIC, "0", "Successful"]
    assert groups.cells("--describe", "--group", "forgetful") == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_deleted_group_is_gone(groups: Groups, protocol: str) -> None:
    name = f"short-lived-{protocol}"
    groups.make(name, protocol)

    deleted = groups.run("--delete", "--group", name)

    assert deleted == [f"Deletion of requested consumer groups ('{name}') was successful."]
    assert name not in groups.run("--list")


def test_an_unknown_group_is_reported(groups: Groups) -> None:
    described = groups.tools.run(GROUPS, "--describe", "--group", "never")
    deleted = groups.tools.run(GROUPS, "--delete", "--group", "never")

    assert "GroupIdNotFoundException: Group never not found." in described.said
    complaint = "* Group 'never' could not be deleted due to"
    assert f"{complaint}: org.apache.kafka.common.errors.GroupIdNotFoundException" in deleted.said


def test_kafka_groups_lists_all_types(groups: Groups, used: str) -> None:
    lines = [line.split() for line in groups.tools.succeed("kafka-groups", "--list")]

    assert lines[0] == ["GROUP", "TYPE", "PROTOCOL"]
    assert [used, used.removeprefix("used-").capitalize(), "consumer"] in lines
