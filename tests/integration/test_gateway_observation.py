"""Clients that push nothing, seen by `odradek gateway` or `odradek serve`: the telemetry topic tells."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odradek.gateway.observation.names import OWN
from odradek.plugin import TelemetryRecord
from odradek.testing.data_points import DataPoint, data_points
from odradek.topic import decode_record
from support.gateways import gateway_of
from support.hosts import running_host, serving

pytestmark = pytest.mark.ci

RECORDS = 500
PARTITIONS = 3
CONSUMER = "org.apache.kafka.consumer."
PRODUCER = "org.apache.kafka.producer."
WINDOW_MS = 300
WINDOW = ("subscriptions.all.metrics=*", f"subscriptions.all.interval.ms={WINDOW_MS}")
HIGH_MS = 1_000_000_000


@dataclass
class Seen:
    """The records about one client."""

    records: list[TelemetryRecord]

    @property
    def points(self) -> list[DataPoint]:
        return [point for record in self.records for point in data_points(record.payload.data)]

    def total(self, name: str, api: str | None = None) -> float:
        """The sum of a metric over all windows."""
        return sum(
            point.value
            for point in self.points
            if point.metric == name and api in (None, point.attributes.get("api"))
        )

    def values(self, name: str) -> list[float]:
        return [point.value for point in self.points if point.metric == name]


async def produce_with_aiokafka(bootstrap: str) -> None:
    import aiokafka

    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="aio-producer") as producer:
        for number in range(RECORDS):
            await producer.send("orders", b"value %d" % number, partition=number % PARTITIONS)


async def consume_with_aiokafka(bootstrap: str) -> int:
    import aiokafka

    async with aiokafka.AIOKafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        client_id="aio-consumer",
        group_id="readers",
        auto_offset_reset="earliest",
    ) as consumer:
        for _ in range(RECORDS):
            await asyncio.wait_for(anext(consumer), 10)
        await consumer.commit()
        await asyncio.sleep(3 * WINDOW_MS / 1_000)  # windows that end before it leaves the group
        return len(consumer.assignment())


def produce_with_kafka_python(bootstrap: str) -> None:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id="kp-producer")
    for number in range(RECORDS):
        producer.send("payments", b"value %d" % number, partition=0)
    producer.flush(20)
    producer.close()


def push_with_librdkafka(bootstrap: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": "pusher"})
    producer.produce("payments", b"x")
    assert producer.flush(20) == 0
    producer.poll(1)


@contextlib.contextmanager
def observing_gateway(directory: Path, upstream_directory: Path) -> Iterator[str]:
    with (
        running_host(upstream_directory, "node.id=1", f"num.partitions={PARTITIONS}") as upstream,
        gateway_of(upstream.bootstrap, directory, *WINDOW) as gateway,
    ):
        yield gateway.bootstrap


@contextlib.contextmanager
def observing_host(directory: Path, _: Path) -> Iterator[str]:
    settings = "telemetry.observe=silent", f"num.partitions={PARTITIONS}", *WINDOW
    with serving(directory, *(each for value in settings for each in ("--set", value))) as host:
        yield host.bootstrap


@pytest.fixture(scope="module", params=[observing_gateway, observing_host])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """The observed records of each client id, from the data directory of an observer that has stopped."""
    pytest.importorskip("aiokafka")
    pytest.importorskip("kafka")
    directory = tmp_path_factory.mktemp("observer")
    with request.param(directory, tmp_path_factory.mktemp("upstream")) as bootstrap:
        produce_with_kafka_python(bootstrap)
        asyncio.run(produce_with_aiokafka(bootstrap))
        assert asyncio.run(consume_with_aiokafka(bootstrap)) == PARTITIONS
        push_with_librdkafka(bootstrap)
    return read_back(directory)


def read_back(directory: Path) -> dict[str, Seen]:
    """All records of the telemetry topic, by client id."""
    import kafka

    found: dict[str, Seen] = {}
    with running_host(directory) as host:
        consumer = kafka.KafkaConsumer(bootstrap_servers=host.bootstrap, auto_offset_reset="earliest")
        partitions = consumer.partitions_for_topic("__client_telemetry")
        assert partitions
        topic = [kafka.TopicPartition("__client_telemetry", index) for index in sorted(partitions)]
        consumer.assign(topic)
        ends: dict[Any, int] = consumer.end_offsets(topic)
        while any(consumer.position(each) < ends[each] for each in topic):
            for records in consumer.poll(10_000).values():
                for record in records:
                    read = decode_record(record.key, record.value, record.headers)
                    name = f"{read.context.client_id} {'observed' if read.observed else 'pushed'}"
                    found.setdefault(name, Seen([])).records.append(read)
        consumer.close()
    return found


@pytest.mark.parametrize("client", ["kp-producer", "aio-producer"])
def test_the_records_of_a_producer_are_all_counted(seen: dict[str, Seen], client: str) -> None:
    about = seen[f"{client} observed"]

    assert about.total(OWN + "produce.records") == RECORDS
    assert about.total(OWN + "produce.batches") >= about.total(OWN + "requests", "Produce") >= 1
    assert about.total(OWN + "errors") == 0
    assert about.total(PRODUCER + "connection.creation.total") == about.total(OWN + "connections") >= 2
    assert about.total(OWN + "disconnects") == about.total(OWN + "connections")
    assert all(0 < value < HIGH_MS for value in about.values(PRODUCER + "node.request.latency.max"))
    assert not about.values(CONSUMER + "node.request.latency.max")
    assert {record.context.connection.client_address for record in about.records} == {"127.0.0.1"}
    assert {point.resource["observed"] for point in about.points} == {"true"}


def test_a_group_member_is_seen(seen: dict[str, Seen]) -> None:
    about = seen["aio-consumer observed"]

    assert PARTITIONS in about.values(CONSUMER + "coordinator.assigned.partitions")
    assert about.values(CONSUMER + "coordinator.rebalance.latency.max")
    assert about.values(CONSUMER + "coordinator.commit.latency.avg")
    assert about.values(CONSUMER + "fetch.manager.fetch.latency.avg")
    assert about.total(OWN + "fetch.bytes") > RECORDS * len(b"value 1")
    assert "readers" in {point.resource.get("group_id") for point in about.points}


def test_a_client_that_pushes_is_not_observed(seen: dict[str, Seen]) -> None:
    pushed = min(record.context.received_ms for record in seen["pusher pushed"].records)
    before = seen.get("pusher observed", Seen([]))  # on a busy machine, a window ends before it asks to push

    assert all(record.context.received_ms <= pushed for record in before.records)


def test_a_client_is_one_instance_from_window_to_window(seen: dict[str, Seen]) -> None:
    for name, about in seen.items():
        ids = {record.payload.client_instance_id for record in about.records}
        assert name.endswith("pushed") or len(ids) == 1, name
