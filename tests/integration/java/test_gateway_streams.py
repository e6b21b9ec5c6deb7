"""Kafka Streams with exactly-once processing through gateways that are killed, while a broker restarts."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.java.balanced_gateways import GATEWAYS, BalancedGateways
from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import NODES, KafkaCluster
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
RECORDS_PER_S = 100
KEYS = 7
PARTITIONS = 3
FROM, COPIES, COUNTS = "streamed", "streamed-copies", "streamed-counts"
PATIENCE_S = 180


@dataclass(slots=True)
class Load:
    """The records that were produced, and those that a consumer of committed records has read."""

    copies: list[int] = field(default_factory=list)
    counts: dict[bytes, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    produced: int = 0
    acknowledged: int = 0
    enough: threading.Event = field(default_factory=threading.Event)
    """Ends the producer."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Ends the consumer."""

    @property
    def is_complete(self) -> bool:
        counted = sum(max(each) for each in self.counts.values())
        return len(set(self.copies)) == counted == self.produced

    def goes_on(self) -> None:
        """Wait for more copies."""
        before = len(self.copies)
        wait_until(lambda: len(self.copies) > before or self.failures, "copies go on", PATIENCE_S)


@contextmanager
def application(jvm: Jvm, bootstrap: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The running application; it has to end well."""
    arguments = (bootstrap, "exactly-once", FROM, COPIES, COUNTS, str(folder))
    command = jvm.command("odradek.ExactlyOnceStream", *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
            out, _ = process.communicate("\n", timeout=PATIENCE_S)
            assert process.returncode == 0, out
            assert "state=RUNNING" in out
            assert "state=ERROR" not in out
        finally:
            process.kill()


def produce(bootstrap: str, load: Load) -> None:
    """Produce numbered records at a steady rate."""

    def delivered(error: Any, _message: Any) -> None:
        if error is None:
            load.acknowledged += 1
        else:
            load.failures.append(str(error))

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    while not load.enough.wait(1 / RECORDS_PER_S):
        producer.produce(FROM, str(load.produced), f"key-{load.produced % KEYS}", on_delivery=delivered)
        load.produced += 1
        producer.poll(0)
    producer.flush(PATIENCE_S)


def read(bootstrap: str, load: Load) -> None:
    """Read until the end of the test: a record that comes twice may come late."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "streamed-readers",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([COPIES, COUNTS])
    while not load.ended.is_set():
        for message in consumer.consume(500, 0.2):
            if message.error() is not None:
                continue  # librdkafka reports lost connections here, too, and goes on
            if message.topic() == COPIES:
                load.copies.append(int(message.value()))
            else:
                load.counts.setdefault(message.key(), []).append(int.from_bytes(message.value()))
    consumer.close()


@contextmanager
def running(load: Load, bootstrap: str) -> Iterator[None]:
    """A producer and a consumer in threads."""
    threads = [threading.Thread(target=work, args=(bootstrap, load)) for work in (produce, read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        load.enough.set()
        load.ended.set()
        for thread in threads:
            thread.join()


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
    with application(jvm, gateways.bootstrap, tmp_path), running(load, gateways.bootstrap):
        load.goes_on()
        with restarting(kafka_nodes, NODES[-1]):
            for gateway in range(GATEWAYS):
                gateways.kill(gateway)
                gateways.start(gateway)
                load.goes_on()
        load.enough.set()
        wait_until(
            lambda: load.is_complete or load.failures,
            lambda: (load.produced, len(load.copies), load.counts),
            PATIENCE_S,
        )

    assert load.failures == []
    assert load.acknowledged == load.produced
    assert sorted(load.copies) == list(range(load.produced))
    assert {key: max(counts) for key, counts in load.counts.items()} == {
        f"key-{key}".encode(): len(range(key, load.produced, KEYS)) for key in range(KEYS)
    }
    assert all(counts == sorted(set(counts)) for counts in load.counts.values())
    assert gateways.faults == ""
