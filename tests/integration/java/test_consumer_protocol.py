"""The consumer protocol (KIP-848) with Kafka's own Java consumer."""

from __future__ import annotations

import json
import subprocess

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = pytest.mark.java

PROTOCOL = ("--command-property", "group.protocol=consumer")


def consume(tools: ConsoleTools, count: int, group: str, *args: str) -> list[str]:
    """The first ``count`` records, sorted; their offsets are committed."""
    limit = ("--max-messages", str(count), "--timeout-ms", "30000")
    return sorted(
        tools.succeed("kafka-console-consumer", "--group", group, *limit, *PROTOCOL, *args, timeout_s=60)
    )


def lines(first: int, end: int) -> list[str]:
    return [f"line {number:03}" for number in range(first, end)]


def test_the_console_consumer_reads_and_resumes(tools: ConsoleTools) -> None:
    tools.create_topic("k848", 3)
    tools.produce_lines("k848", lines(0, 30))
    first = consume(tools, 30, "k848-group", "--topic", "k848", "--from-beginning")
    tools.produce_lines("k848", lines(30, 40))

    second = consume(tools, 10, "k848-group", "--topic", "k848")

    assert first == lines(0, 30)
    assert second == lines(30, 40)


def test_the_console_consumer_subscribes_with_a_regular_expression(tools: ConsoleTools) -> None:
    for topic in ("k848-re-a", "k848-re-b", "other-re"):
        tools.create_topic(topic)
    tools.produce_lines("k848-re-a", ["a"])
    tools.produce_lines("k848-re-b", ["b"])
    tools.produce_lines("other-re", ["other"])

    read = consume(tools, 2, "k848-re-group", "--include", "k848-re-.*", "--from-beginning")

    assert read == ["a", "b"]


def next_event(process: subprocess.Popen[str], name: str) -> dict[str, object]:
    """The next line of kafka-verifiable-consumer of this kind."""
    assert process.stdout is not None
    for line in process.stdout:
        event: dict[str, object] = json.loads(line)
        if event["name"] == name:
            return event
    raise AssertionError(f"it ended without {name}")


def first_partitions(consumer: subprocess.Popen[str]) -> object:
    """The partitions of a consumer; it may have none at first."""
    while (found := next_event(consumer, "partitions_assigned")["partitions"]) == []:
        pass
    return found


def test_two_java_consumers_share_and_the_tools_show_them(tools: ConsoleTools) -> None:
    tools.create_topic("k848-two", 2)
    arguments = ("--topic", "k848-two", "--group-id", "k848-two-group", "--group-protocol", "consumer")
    with tools.started("kafka-verifiable-consumer", *arguments) as first:
        whole = first_partitions(first)
        with tools.started("kafka-verifiable-consumer", *arguments) as second:
            half = first_partitions(second)
            shown = tools.succeed(
                "kafka-consumer-groups", "--describe", "--group", "k848-two-group", "--state"
            )

    assert isinstance(whole, list)
    assert isinstance(half, list)
    assert (len(whole), len(half)) == (2, 1)
    assert any("Stable" in line and "uniform" in line for line in shown), shown


def test_a_java_consumer_converts_a_classic_group(tools: ConsoleTools) -> None:
    tools.create_topic("k848-moved", 2)
    arguments = ("--topic", "k848-moved", "--group-id", "k848-moved-group", "--group-protocol")
    with tools.started("kafka-verifiable-consumer", *arguments, "classic") as old:
        whole = next_event(old, "partitions_assigned")["partitions"]
        with tools.started("kafka-verifiable-consumer", *arguments, "consumer") as new:
            half = next_event(new, "partitions_assigned")["partitions"]
            while half == []:
                half = next_event(new, "partitions_assigned")["partitions"]
            rest = next_event(old, "partitions_assigned")["partitions"]

    assert isinstance(whole, list)
    assert isinstance(half, list)
    assert isinstance(rest, list)
    assert (len(whole), len(half), len(rest)) == (2, 1, 1)
    assert half != rest
