"""``odradek topics``, ``groups`` and ``configs`` print the same as Kafka's tools about the same broker.

Lines are compared without trailing blanks and in any order, because the tools promise neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from integration.java.console_tools import ConsoleTools
from support.tools import Done, command_line

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
SCRIPTS = {"topics": "kafka-topics", "groups": "kafka-consumer-groups", "configs": "kafka-configs"}
RESET = ("--reset-offsets", "--dry-run")

Both = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def ours(tools: ConsoleTools, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs one of our commands."""
    return lambda command, *arguments: command_line(tools.bootstrap, command, capsys)(*arguments)


@pytest.fixture
def both(tools: ConsoleTools, ours: Callable[..., Done]) -> Both:
    """The output of our command and of Kafka's tool with the same arguments."""

    def run(command: str, *arguments: str) -> tuple[list[str], list[str]]:
        done = ours(command, *arguments)
        assert done.status == 0, done.err
        return sorted(stripped(done.out)), sorted(stripped(tools.succeed(SCRIPTS[command], *arguments)))

    return run


def stripped(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def group(tools: ConsoleTools) -> str:
    """A group without members that has read half of its topic."""
    tools.create_topic("cli-read", 2, "--config", "retention.ms=7200000", "--config", "cleanup.policy=delete")
    tools.produce_lines("cli-read", [f"line {number}" for number in range(20)])
    tools.consume_lines("cli-read", 10, "--group", "cli-reader", "--from-beginning")
    return "cli-reader"


@contextmanager
def member(tools: ConsoleTools, group: str, protocol: str) -> Iterator[None]:
    """A librdkafka consumer with an assignment."""
    kafka: Any = pytest.importorskip("confluent_kafka")
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": tools.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "cli-member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["cli-read"])
        assert consumer.poll(30) is not None
        yield
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("topics", ("--list", "--topic", "cli-.*")),
        ("topics", ("--describe", "--topic", "cli-read")),
        ("topics", ("--describe", "--topics-with-overrides", "--topic", "cli-read")),
        ("topics", ("--describe", "--at-min-isr-partitions", "--topic", "cli-read")),
        ("configs", ("--describe", "--topic", "cli-read")),
        ("configs", ("--describe", "--topic", "cli-read", "--all")),
        ("configs", ("--describe", "--topic", "cli-nope")),
        ("configs", ("--describe", "--broker", "1", "--all")),
        ("configs", ("--describe", "--entity-type", "brokers")),
        ("groups", ("--list", "--state", "empty", "--type", "classic")),
        ("groups", ("--describe", "--group", "cli-reader")),
        ("groups", ("--describe", "--group", "cli-reader", "--state", "--verbose")),
        ("groups", ("--describe", "--group", "cli-reader", "--members")),
        ("groups", ("--group", "cli-reader", *RESET, "--shift-by", "1", "--all-topics")),
        ("groups", ("--group", "cli-new", *RESET, "--to-latest", "--topic", "cli-read", "--export")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_both_tools_print_the_same_lines(
    group: str, both: Both, command: str, arguments: tuple[str, ...]
) -> None:
    our_lines, their_lines = both(command, *arguments)

    assert our_lines == their_lines
    assert our_lines


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_both_tools_print_the_same_lines_about_a_group_with_a_member(
    tools: ConsoleTools, group: str, both: Both, protocol: str
) -> None:
    name = f"cli-live-{protocol}"
    with member(tools, name, protocol):
        offsets = both("groups", "--describe", "--group", name, "--verbose")
        members = both("groups", "--describe", "--group", name, "--members", "--verbose")
        state = both("groups", "--describe", "--group", name, "--state", "--verbose")

    assert offsets[0] == offsets[1]
    assert members[0] == members[1]
    assert state[0] == state[1]
    assert len(offsets[0]) == 3


def test_each_tool_sees_changes_of_the_other(
    tools: ConsoleTools, group: str, ours: Callable[..., Done]
) -> None:
    to_the_end = ("--reset-offsets", "--group", "cli-set", "--to-latest", "--topic", "cli-read", "--execute")
    policy = ("--add-config", "cleanup.policy=[compact,delete]")

    done = [
        ours("topics", "--create", "--topic", "cli-made", "--partitions", "2"),
        ours("configs", "--topic", "cli-made", "--alter", *policy),
        ours("groups", *to_the_end),
    ]

    described = tools.succeed("kafka-topics", "--describe", "--topic", "cli-made")
    offsets = tools.succeed("kafka-consumer-groups", "--describe", "--group", "cli-set")

    assert [each.status for each in done] == [0, 0, 0]
    assert "PartitionCount: 2" in described[0]
    assert "cleanup.policy=compact,delete" in described[0]
    rows = [line.split() for line in offsets[2:]]
    assert [row[:3] for row in rows] == [["cli-set", "cli-read", "0"], ["cli-set", "cli-read", "1"]]
    assert sum(int(row[3]) for row in rows) == 20
