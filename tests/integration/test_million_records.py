"""A million records through librdkafka: each read once and in order, though the host is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from integration.numbered_records import KILLS, PARTITIONS, RECORDS, TOPIC, Group, KillableHost, value

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
DEADLINE_S = 180


@dataclass(slots=True)
class Deliveries:
    """The counts of delivery reports."""

    count: int = 0
    failed: int = 0

    def report(self, error: object, _message: object) -> None:
        self.count += 1
        self.failed += error is not None


def produce(host: KillableHost) -> Deliveries:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    deliveries = Deliveries()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": host.bootstrap, "acks": "all", "enable.idempotence": True}
    )
    deadline = time.monotonic() + DEADLINE_S
    for number in range(RECORDS):
        while time.monotonic() < deadline:
            try:
                producer.produce(
                    TOPIC, value(number // PARTITIONS), None, number % PARTITIONS, deliveries.report
                )
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
            host.kill_when_due(deliveries.count)
    while len(producer) and time.monotonic() < deadline:
        producer.poll(0.05)
        host.kill_when_due(deliveries.count)
    return deliveries


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableHost]:
    """A host that holds the million records, and was killed meanwhile."""
    admin = pytest.importorskip("confluent_kafka.admin")
    with KillableHost(tmp_path_factory.mktemp("data")) as host:
        client = admin.AdminClient({"bootstrap.servers": host.bootstrap})
        client.create_topics([admin.NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(10)
        started = time.monotonic()
        deliveries = produce(host)
        print(f"\nproduced in {time.monotonic() - started:.1f} s, killed {host.killed} times")
        assert (deliveries.count, deliveries.failed) == (RECORDS, 0)
        assert host.killed == KILLS
        yield host


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_record_is_read_once_and_in_order(host: KillableHost, protocol: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    client = {"bootstrap.servers": host.bootstrap, "group.id": f"readers-{protocol}"}
    group = Group(
        confluent_kafka.Consumer,
        client | {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False},
    )

    started = time.monotonic()
    group.read_all(DEADLINE_S)

    print(f"\nread in {time.monotonic() - started:.1f} s, {group.assignments} assignments")
    assert group.ledger.surprises == []
    assert group.ledger.total == RECORDS
    assert group.assignments > 3
    observer = confluent_kafka.Consumer(client)
    partitions = [confluent_kafka.TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    committed = [row.offset for row in observer.committed(partitions, timeout=10)]
    ends = [observer.get_watermark_offsets(partition, timeout=10)[1] for partition in partitions]
    observer.close()
    assert committed == ends == group.ledger.expected
