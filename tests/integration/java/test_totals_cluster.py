"""Totals of three processes on Apache Kafka, some of which are killed: no increment is lost or doubled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import KafkaCluster
from odradek.plugin import TelemetryRecord
from support.delta_clients import Scene, d
from support.forwarding import ForwardProcess, fill
from support.otlp_collector import collecting
from support.sudden_deaths import killed, random_moments
from support.totals_collector import NewestTotals
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
TOPIC = "totals-fleet"
PARTITIONS = 4
CLIENTS = 20
RECORDS = 600
PROCESSES = 3
DEATHS = 2
LONGEST_S = 1.0
PATIENCE_S = 90


def pushes() -> list[TelemetryRecord]:
    """Clients push in turn: 1, 2, 3..."""
    return [
        Scene().record(
            d(float(turn + 1), 60 * turn, 60 * turn + 60, client=str(client)),
            at=60 * turn + 60,
            instance=bytes([client]) * 16,
        )
        for turn in range(RECORDS // CLIENTS)
        for client in range(CLIENTS)
    ]


def pieces() -> list[range]:
    """The records before each death, and those after the last."""
    size = RECORDS // (DEATHS + 1)
    return [range(start, start + size) for start in range(0, RECORDS, size)]


def test_totals_of_three_processes_outlive_their_deaths(
    jvm: Jvm, kafka_nodes: KafkaCluster, tmp_path: Path
) -> None:
    """Needs Kafka itself: its transaction coordinator, fencing and compaction are not the host's."""
    tools = ConsoleTools(jvm, kafka_nodes.bootstrap)
    tools.create_topic(TOPIC, PARTITIONS, "--replication-factor", "3")
    properties = tmp_path / "forward.properties"
    properties.write_text("session.timeout.ms=3000\nheartbeat.interval.ms=300\n")
    totals, records = NewestTotals(), pushes()
    turns = RECORDS // CLIENTS
    expected = {("c", f"client={client}"): turns * (turns + 1) / 2 for client in range(CLIENTS)}
    with collecting() as collector, ExitStack() as running:
        collector.mood = totals
        settings = (
            f"plugins.otlp.endpoint={collector.url}/v1/metrics",
            "plugins.otlp.protocol=http/protobuf",
            "plugins.otlp.requests.in.flight=1",
            "plugins.otlp.batch.max.age.ms=50",
            "plugins.otlp.temporality=cumulative",
        )
        arguments = (
            *("--bootstrap-server", kafka_nodes.bootstrap, "--topic", TOPIC, "--group", "totals"),
            *("--command-config", str(properties)),
            *(part for setting in settings for part in ("--set", setting)),
        )
        with ThreadPoolExecutor() as pool:
            started = pool.map(lambda _: ForwardProcess(*arguments), range(PROCESSES))
            processes = [running.enter_context(each) for each in started]
        for numbers, chance in zip(pieces(), random_moments(DEATHS, LONGEST_S), strict=False):
            fill(kafka_nodes.bootstrap, numbers, PARTITIONS, records, TOPIC)
            processes.remove(killed(processes, chance))
        running.enter_context(ForwardProcess(*arguments))
        fill(kafka_nodes.bootstrap, pieces()[-1], PARTITIONS, records, TOPIC)
        wait_until(lambda: not totals.differences(expected), lambda: totals.differences(expected), PATIENCE_S)
        configs = tools.succeed(
            "kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "totals.otlp.totals"
        )

    assert totals.fallen == []
    assert any("cleanup.policy=compact" in line for line in configs)
