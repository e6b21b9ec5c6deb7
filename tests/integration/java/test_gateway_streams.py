"""Kafka Streams with exactly-once processing through gateways that are killed, while a broker restarts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.java.balanced_gateways import GATEWAYS, BalancedGateways
from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import NODES, KafkaCluster
from integration.java.stream_load import COPIES, COUNTS, FROM, PARTITIONS, Load, running, started

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@contextmanager
def restarting(cluster: KafkaCluster, node: int) -> Iterator[None]:
    """A node restarts meanwhile; at the end it runs again."""
    thread = threading.Thread(target=cluster.roll, args=(node,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_nothing_is_lost_or_doubled_while_gateways_are_killed_and_a_broker_restarts(
    jvm: Jvm, kafka_nodes: KafkaCluster, gateways: BalancedGateways, tmp_path: Path
) -> None:
    tools = ConsoleTools(jvm, gateways.bootstrap)
    for topic in (FROM, COPIES, COUNTS):
        tools.create_topic(topic, PARTITIONS, "--replication-factor", "3")
    load = Load()
    application = started(jvm, gateways.bootstrap, tmp_path)
    try:
        with running(load, gateways.bootstrap):
            load.goes_on()
            with restarting(kafka_nodes, NODES[-1]):
                for gateway in range(GATEWAYS):
                    gateways.kill(gateway)
                    gateways.start(gateway)
                    load.goes_on()
            load.ends()
        application.ends_well()
    finally:
        application.kill()

    load.check()
    assert gateways.faults == ""
