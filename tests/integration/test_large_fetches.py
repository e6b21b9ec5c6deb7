"""Real clients read answers of which the kernel sends the large parts and the host the small ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.net.sending import LARGE_SLICE_BYTES
from support.hosts import ThreadedHost, running_host

TOPIC, PARTITIONS, TIMEOUT_S = "sizes", 3, 20
SIZES = (10, 1_000, 100_000, LARGE_SLICE_BYTES - 100, LARGE_SLICE_BYTES, 300_000, 900_000)
VALUES = [bytes([number % 256]) * SIZES[number % len(SIZES)] for number in range(60)]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """A host with values of all sizes in each partition, in several segments."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    folder: Path = tmp_path_factory.mktemp("large")
    with running_host(folder / "data", "group.initial.rebalance.delay.ms=0") as started:
        client = admin.AdminClient({"bootstrap.servers": started.bootstrap})
        config = {"segment.bytes": "4000000"}
        client.create_topics([admin.NewTopic(TOPIC, PARTITIONS, 1, config=config)])[TOPIC].result(TIMEOUT_S)
        producer = confluent_kafka.Producer({"bootstrap.servers": started.bootstrap})
        for value in VALUES:
            for partition in range(PARTITIONS):
                producer.produce(TOPIC, value, partition=partition)
        assert producer.flush(TIMEOUT_S) == 0
        yield started


@pytest.mark.parametrize("at_once", [1, 1 << 20, 50 << 20])
def test_librdkafka_reads_every_size(host: ThreadedHost, at_once: int) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    limits = {"fetch.message.max.bytes": at_once, "fetch.max.bytes": 50 << 20}
    consumer = kafka.Consumer({"bootstrap.servers": host.bootstrap, "group.id": f"g{at_once}"} | limits)
    consumer.assign([kafka.TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}

    for _ in range(PARTITIONS * len(VALUES)):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        found[message.partition()].append(message.value())
    consumer.close()

    assert found == dict.fromkeys(range(PARTITIONS), VALUES)


def test_kafka_python_reads_every_size(host: ThreadedHost) -> None:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=host.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000
    )
    consumer.assign([kafka.TopicPartition(TOPIC, 0)])

    found = [record.value for _, record in zip(VALUES, consumer, strict=False)]
    consumer.close()

    assert found == VALUES
