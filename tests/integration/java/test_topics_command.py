"""kafka-topics.sh; the expectations hold for Apache Kafka 4.3.1 too."""

from __future__ import annotations

import re

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
TOPICS = "kafka-topics"


def described(tools: ConsoleTools, *args: str) -> list[str]:
    """The output of --describe, without the columns in which brokers differ (ids, eligible leaders)."""
    lines = tools.succeed(TOPICS, "--describe", *args)
    return [re.sub(r"TopicId: \S+\t|\tElr:.*", "", line).strip() for line in lines]


def test_a_created_topic_is_described_with_its_partitions_and_configs(tools: ConsoleTools) -> None:
    tools.create_topic("created", 2, "--replication-factor", "1", "--config", "retention.ms=100000")

    lines = described(tools, "--topic", "created")

    assert lines == [
        "Topic: created\tPartitionCount: 2\tReplicationFactor: 1"
        "\tConfigs: min.insync.replicas=1,retention.ms=100000",
        "Topic: created\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
        "Topic: created\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1",
    ]


def test_a_topic_has_an_id_of_22_characters(tools: ConsoleTools) -> None:
    tools.create_topic("with-an-id")

    first = tools.succeed(TOPICS, "--describe", "--topic", "with-an-id")[0]

    found = re.search(r"TopicId: (\S{22})\t", first)
    assert found is not None, first
    by_id = tools.succeed(TOPICS, "--describe", "--topic-id", found.group(1))
    assert by_id[0] == first


def test_partitions_and_replicas_have_defaults(tools: ConsoleTools) -> None:
    created = tools.succeed(TOPICS, "--create", "--topic", "by-default")

    assert created == ["Created topic by-default."]
    assert described(tools, "--topic", "by-default")[0].startswith(
        "Topic: by-default\tPartitionCount: 1\tReplicationFactor: 1"
    )


def test_creating_a_topic_again_fails_without_if_not_exists(tools: ConsoleTools) -> None:
    tools.create_topic("twice")

    again = tools.run(TOPICS, "--create", "--topic", "twice")

    assert again.status == 1
    assert "Topic 'twice' already exists." in again.said
    assert tools.succeed(TOPICS, "--create", "--topic", "twice", "--if-not-exists") == []


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--topic", "bad/name"), "InvalidTopicException"),
        (("--topic", "two-copies", "--replication-factor", "2"), "InvalidReplicationFactorException"),
        (("--topic", "bad-value", "--config", "retention.ms=x"), "Not a number of type LONG"),
        (("--topic", "bad-value", "--config", "segment.bytes=1"), "segment.bytes"),
    ],
)
def test_an_invalid_topic_is_refused(tools: ConsoleTools, args: tuple[str, ...], complaint: str) -> None:
    created = tools.run(TOPICS, "--create", *args)

    assert created.status == 1
    assert complaint in created.said


def test_topics_are_listed(tools: ConsoleTools) -> None:
    tools.create_topic("listed-b")
    tools.create_topic("listed-a")

    listed = tools.succeed(TOPICS, "--list")

    assert [name for name in listed if name.startswith("listed-")] == ["listed-a", "listed-b"]
    assert tools.succeed(TOPICS, "--list", "--topic", "listed-a") == ["listed-a"]


def test_topics_can_be_described_by_a_pattern(tools: ConsoleTools) -> None:
    tools.create_topic("pattern-1")
    tools.create_topic("pattern-2")

    lines = described(tools, "--topic", "pattern-.")

    assert sorted(line.split("\t")[0] for line in lines if "PartitionCount" in line) == [
        "Topic: pattern-1",
        "Topic: pattern-2",
    ]


@pytest.mark.parametrize(
    "condition",
    ["--unavailable-partitions", "--under-replicated-partitions", "--under-min-isr-partitions"],
)
def test_no_partition_has_a_problem(tools: ConsoleTools, condition: str) -> None:
    tools.create_topic(f"sound{condition}")

    assert tools.succeed(TOPICS, "--describe", condition) == []


def test_overridden_configs_are_found(tools: ConsoleTools) -> None:
    tools.create_topic("overridden", 1, "--config", "cleanup.policy=compact")

    lines = described(tools, "--topics-with-overrides")

    assert (
        "Topic: overridden\tPartitionCount: 1\tReplicationFactor: 1\t"
        "Configs: min.insync.replicas=1,cleanup.policy=compact" in lines
    )


def test_partitions_can_be_added(tools: ConsoleTools) -> None:
    tools.create_topic("growing", 3)

    tools.succeed(TOPICS, "--alter", "--topic", "growing", "--partitions", "5")

    assert [line.split("\t")[1] for line in described(tools, "--topic", "growing")[1:]] == [
        f"Partition: {index}" for index in range(5)
    ]


def test_partitions_cannot_be_removed(tools: ConsoleTools) -> None:
    tools.create_topic("shrinking", 3)

    altered = tools.run(TOPICS, "--alter", "--topic", "shrinking", "--partitions", "2")

    assert altered.status == 1
    assert "InvalidPartitionsException" in altered.said
    assert "The topic shrinking currently has 3 partition(s); 2 would not be an increase." in altered.said


def test_a_deleted_topic_is_gone(tools: ConsoleTools) -> None:
    tools.create_topic("short-lived")

    deleted = tools.succeed(TOPICS, "--delete", "--topic", "short-lived")

    assert deleted == []
    assert "short-lived" not in tools.succeed(TOPICS, "--list")


def test_an_unknown_topic_cannot_be_deleted(tools: ConsoleTools) -> None:
    deleted = tools.run(TOPICS, "--delete", "--topic", "never")

    assert deleted.status == 1
    assert "Topic 'never' does not exist as expected" in deleted.said
    assert tools.succeed(TOPICS, "--delete", "--topic", "never", "--if-exists") == []
