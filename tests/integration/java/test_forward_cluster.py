"""``odradek forward`` on three Apache Kafka nodes: a process and a node are killed, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import KafkaCluster
from support.accounts import assert_served_accounts_balance
from support.forwarding import FLEET, ForwardProcess, fill, metrics
from support.otlp_collector import collecting
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
PARTITIONS = 6
PATIENCE_S = 60
BATCH = 40
"""Default of ``batch.max.records``: the most that a killed process has in flight."""


def test_the_forwarders_of_two_processes_outlive_one_of_them_and_a_node(
    jvm: Jvm, kafka_nodes: KafkaCluster, tmp_path: Path
) -> None:
    """Needs Kafka itself: coordinators and leaders move, and groups are those of another broker."""
    tools = ConsoleTools(jvm, kafka_nodes.bootstrap)
    tools.create_topic(FLEET, PARTITIONS, "--replication-factor", "3")
    properties = tmp_path / "forward.properties"
    properties.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=300\n")
    with collecting() as collector:
        arguments = (
            *("--bootstrap-server", kafka_nodes.bootstrap, "--topic", FLEET),
            *("--command-config", str(properties), "--set", "metrics.listener=http://127.0.0.1:0"),
            *("--set", f"plugins.otlp.endpoint={collector.url}/v1/metrics"),
            *("--set", "plugins.otlp.protocol=http/protobuf", "--set", "plugins.otlp.batch.max.age.ms=50"),
        )

        def arrived(numbers: range) -> None:
            wanted = set(metrics(numbers))
            wait_until(
                lambda: not collector.missing(wanted), lambda: len(collector.missing(wanted)), PATIENCE_S
            )

        with ForwardProcess(*arguments) as one, ForwardProcess(*arguments) as two:
            fill(kafka_nodes.bootstrap, range(600), PARTITIONS)
            arrived(range(600))
            one.kill()
            kafka_nodes.kill(2)
            try:
                fill(kafka_nodes.bootstrap, range(600, 1200), PARTITIONS)
                arrived(range(1200))
            finally:
                kafka_nodes.start(2)
            wait_until(
                lambda: assert_served_accounts_balance(two.metrics_url)["forwarder_queued", "otlp"] == 0,
                "lag",
            )
            shown = tools.succeed("kafka-consumer-groups", "--describe", "--group", "odradek.forward.otlp")
            assert two.terminate() == 0
        kafka_nodes.wait(2)

        assert collector.duplicates <= BATCH
    lags = [line.split()[5] for line in shown if f" {FLEET} " in line]
    assert lags == ["0"] * PARTITIONS
