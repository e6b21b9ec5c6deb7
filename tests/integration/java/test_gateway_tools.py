"""Kafka's tools say the same through a gateway as at the nodes, and share groups read through gateways."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.java.balanced_gateways import BalancedGateways
from integration.java.console_tools import ConsoleTools
from integration.java.gateway_process import HOST
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import ADDRESS, NODES, KafkaCluster
from integration.java.leaders import move_leaders

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
TOPIC, GROUP = "told", "told-readers"
SHARED, SHARE_GROUP = "told-shared", "told-sharers"
LINES = [f"line {number:03}" for number in range(200)]


@dataclass(frozen=True, slots=True)
class Ways:
    """The same tools at the nodes and at the gateways."""

    direct: ConsoleTools
    through: ConsoleTools
    addresses: dict[str, str]
    """The gateways' addresses by those of the nodes."""

    def renamed(self, line: str) -> str:
        """A line of the nodes with the addresses that a client of the gateways has to see."""
        for node, gateway in self.addresses.items():
            line = line.replace(node, gateway)
        return line


@pytest.fixture(scope="module")
def ways(jvm: Jvm, kafka_nodes: KafkaCluster, gateways: BalancedGateways) -> Ways:
    """The tools, with a topic, a group and a subscription made through the gateways."""
    through = ConsoleTools(jvm, gateways.bootstrap)
    addresses = {
        f"{ADDRESS}:{port}": f"{HOST}:{gateways.first_port + place}"
        for place, port in enumerate(kafka_nodes.ports.values(), start=1)
    }
    through.create_topic(TOPIC, 3, "--replication-factor", "3", "--config", "max.message.bytes=2000000")
    through.produce_lines(TOPIC, LINES)
    through.consume_lines(TOPIC, len(LINES), "--group", GROUP, "--from-beginning")
    through.succeed(
        "kafka-client-metrics", "--alter", "--name", "told", "--metrics", "no.such.", "--interval", "60000"
    )
    return Ways(ConsoleTools(jvm, kafka_nodes.bootstrap), through, addresses)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("kafka-acls", ("--list",)),
        ("kafka-client-metrics", ("--describe",)),
        ("kafka-configs", ("--describe", "--entity-type", "topics", "--entity-name", TOPIC, "--all")),
        ("kafka-consumer-groups", ("--describe", "--group", GROUP)),
        ("kafka-features", ("describe",)),
        ("kafka-get-offsets", ("--topic", TOPIC)),
        ("kafka-log-dirs", ("--describe", "--topic-list", TOPIC)),
        ("kafka-metadata-quorum", ("describe", "--status")),
        ("kafka-reassign-partitions", ("--list",)),
        ("kafka-topics", ("--describe", "--topic", TOPIC)),
        ("kafka-transactions", ("list",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_says_the_same_through_a_gateway(ways: Ways, tool: str, arguments: tuple[str, ...]) -> None:
    expected = ways.direct.run(tool, *arguments)

    found = ways.through.run(tool, *arguments)

    assert found.status == expected.status, found.said
    assert sorted(map(steady, found.said.splitlines())) == sorted(
        steady(ways.renamed(line)) for line in expected.said.splitlines()
    )


def test_a_gateway_adds_only_the_telemetry_apis(ways: Ways) -> None:
    expected = ways.direct.succeed("kafka-broker-api-versions")

    found = ways.through.succeed("kafka-broker-api-versions")

    added = set(found) - set(map(ways.renamed, expected))
    assert sorted(line.strip(" ,\t") for line in added) == [
        "GetTelemetrySubscriptions(71): 0 [usable: 0]",
        "PushTelemetry(72): 0 [usable: 0]",
    ]
    missing = set(map(ways.renamed, expected)) - set(found)
    assert sorted(line.strip(" ,\t") for line in missing) == [
        "GetTelemetrySubscriptions(71): UNSUPPORTED",
        "PushTelemetry(72): UNSUPPORTED",
    ]


def steady(line: str) -> str:
    """A line without what changes between two runs: times, and the progress of the controllers."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:,]+|(Epoch|Offset|Watermark|Lag|LagTimeMs|TimeMs):\s*\d+", "", line)


def test_a_share_group_reads_each_record_once_while_leaders_move(ways: Ways, tmp_path: Path) -> None:
    tools, offsets = ways.through, []
    tools.create_topic(SHARED, 1, "--replication-factor", "3")
    options = ("--topic", SHARED, "--group-id", SHARE_GROUP, "--acknowledgement-mode", "sync", "--verbose")
    with tools.started(
        "kafka-verifiable-share-consumer", *options, "--offset-reset-strategy", "earliest"
    ) as consumer:
        for node in NODES:
            tools.produce_lines(SHARED, LINES)
            offsets += acknowledged_offsets(consumer, len(LINES))
            move_leaders(tools, tmp_path, (SHARED,), 1, to=node)
        tools.produce_lines(SHARED, LINES)
        offsets += acknowledged_offsets(consumer, len(LINES))

    assert sorted(offsets) == list(range(len(LINES) * (len(NODES) + 1)))


def acknowledged_offsets(consumer: subprocess.Popen[str], count: int) -> list[int]:
    """The offsets of the next records that the consumer has read and acknowledged."""
    assert consumer.stdout is not None
    found: list[int] = []
    acknowledged = 0
    for line in consumer.stdout:
        event = json.loads(line)
        if event["name"] == "record_data":
            found.append(event["offset"])
        elif event["name"] == "offsets_acknowledged":
            assert event["success"], line
            acknowledged += event["count"]
        if acknowledged >= count:
            break
    return found
