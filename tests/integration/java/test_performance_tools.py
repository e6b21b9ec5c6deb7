"""kafka-producer-perf-test, kafka-consumer-perf-test, kafka-e2e-latency and the verifiable clients."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
RECORDS = 100_000


def events(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines if line.startswith("{")]


def produced(tools: ConsoleTools, topic: str, *args: str) -> list[str]:
    sizes = ("--num-records", str(RECORDS), "--record-size", "100", "--throughput", "-1")
    return tools.succeed("kafka-producer-perf-test", "--topic", topic, *sizes, *args)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_performance_tools_count_every_record(tools: ConsoleTools, codec: str) -> None:
    topic = f"performance-{codec}"
    tools.create_topic(topic, 3)

    summary = produced(tools, topic, "--command-property", f"compression.type={codec}")[-1]

    assert summary.startswith(f"{RECORDS} records sent, ")
    count = ("--num-records", str(RECORDS), "--group", topic)
    consumed = tools.succeed("kafka-consumer-perf-test", "--topic", topic, *count)
    columns = dict(zip(consumed[-2].split(", "), consumed[-1].split(", "), strict=True))
    assert int(columns["data.consumed.in.nMsg"]) == RECORDS


def test_transactions_are_produced_at_speed(tools: ConsoleTools) -> None:
    tools.create_topic("performance-transactions", 3)

    summary = produced(
        tools, "performance-transactions", "--transactional-id", "speed", "--transaction-duration-ms", "100"
    )[-1]

    assert summary.startswith(f"{RECORDS} records sent, ")
    committed = ("--command-property", "isolation.level=read_committed", "--num-records", str(RECORDS))
    consumed = tools.succeed("kafka-consumer-perf-test", "--topic", "performance-transactions", *committed)
    assert int(consumed[-1].split(", ")[4]) == RECORDS


def test_the_end_to_end_latency_is_measured(tools: ConsoleTools) -> None:
    sizes = ("--num-records", "200", "--producer-acks", "all", "--record-size", "100")

    lines = tools.succeed("kafka-e2e-latency", "--topic", "latency", *sizes)

    average = re.search(r"Avg latency: ([\d.]+) ms", "\n".join(lines))
    assert average is not None, lines
    assert 0 < float(average.group(1)) < 1_000


def test_all_records_of_a_verifiable_producer_are_acknowledged(tools: ConsoleTools) -> None:
    tools.create_topic("verified")

    said = events(tools.succeed("kafka-verifiable-producer", "--topic", "verified", "--max-messages", "1000"))

    sent = [event for event in said if event["name"] == "producer_send_success"]
    assert [event["offset"] for event in sent] == list(range(1000))
    assert [event["value"] for event in sent] == [str(number) for number in range(1000)]
    assert said[-1] | {"avg_throughput": 0} == said[-1] | {"sent": 1000, "acked": 1000, "avg_throughput": 0}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_verifiable_consumer_reads_and_commits_all_records(tools: ConsoleTools, protocol: str) -> None:
    topic = f"verified-{protocol}"
    tools.create_topic(topic)
    tools.produce_lines(topic, [str(number) for number in range(500)])
    group = ("--topic", topic, "--group-id", topic, "--group-protocol", protocol)

    said: list[dict[str, Any]] = []
    with tools.started(
        "kafka-verifiable-consumer", *group, "--reset-policy", "earliest", "--max-messages", "500"
    ) as consumer:
        assert consumer.stdout is not None
        for line in consumer.stdout:
            said += events([line])
            if said[-1:] and said[-1]["name"] == "shutdown_complete":
                break

    consumed = [event for event in said if event["name"] == "records_consumed"]
    assert sum(event["count"] for event in consumed) == 500
    offsets = [event for event in said if event["name"] == "offsets_committed"]
    assert offsets
    assert all(event["success"] for event in offsets)
    assert offsets[-1]["offsets"] == [{"topic": topic, "partition": 0, "offset": 500}]
