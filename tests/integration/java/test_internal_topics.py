"""Kafka's tools and the telemetry topic if it is internal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.host_process import HostProcess, host_process

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
TELEMETRY = "__client_telemetry"
CREATED = "Creation of internal topic __consumer_offsets is prohibited."


@pytest.fixture(scope="module")
def host(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    with host_process(tmp_path_factory.mktemp("java-host"), "telemetry.topic.internal=true") as running:
        yield running


def test_a_consumer_of_every_topic_reads_no_telemetry(host: HostProcess, tools: ConsoleTools) -> None:
    subscription = ("--entity-type", "client-metrics", "--entity-name", "all")
    tools.succeed("kafka-configs", "--alter", *subscription, "--add-config", "interval.ms=100,metrics=*")
    tools.create_topic("plain")
    tools.produce_lines("plain", ["a line"])

    with tools.started("kafka-console-consumer", "--include", ".*", "--from-beginning") as consumer:
        assert consumer.stdout is not None
        read = [consumer.stdout.readline()]
        host.wait_for_push(lambda push: push["context"]["client_software_name"] == "apache-kafka-java")
        tools.produce_lines("plain", ["another"])
        read.append(consumer.stdout.readline())
    key_only = ("--formatter-property", "print.key=true", "--formatter-property", "print.value=false")
    by_name = tools.consume_lines(TELEMETRY, 1, "--from-beginning", *key_only)

    assert read == ["a line\n", "another\n"]
    assert [len(key) for key in by_name] == [22]  # the id of a client instance


def test_kafka_topics_can_leave_the_telemetry_out(tools: ConsoleTools) -> None:
    listed = set(tools.succeed("kafka-topics", "--list"))
    without = set(tools.succeed("kafka-topics", "--list", "--exclude-internal"))

    assert listed - without == {TELEMETRY, f"{TELEMETRY}_dead_letter"}


def test_kafka_topics_cannot_create_an_internal_topic(tools: ConsoleTools) -> None:
    refused = tools.run("kafka-topics", "--create", "--topic", "__consumer_offsets", "--partitions", "1")

    assert refused.status == 1
    assert CREATED in refused.said
