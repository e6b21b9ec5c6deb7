"""Records for the Kafka export, a forwarder that delivers them, and a reader of its topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import TopicMetadata
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)

from odradek.plugin import (
    ClientTelemetryPayload,
    Forwarder,
    PluginConfig,
    Reject,
    Retry,
    TelemetryRecord,
)
from odradek.testing import request_context
from odradek_kafka import odradek_forwarder
from support.waiting import wait_until

PATIENCE_S = 20.0
TOPIC = "client_telemetry"


def record_of(number: int, *, instance: int = 1, data: bytes | None = None, **rest: Any) -> TelemetryRecord:
    request = request_context(
        correlation_id=number,
        client_id=f"client-{instance}",
        received_ms=1_760_000_000_000 + number,
        client_software_name="librdkafka",
        client_software_version="2.16.0",
    )
    found = metrics_of(f"org.apache.kafka.producer.metric.{number}", number) if data is None else data
    payload = ClientTelemetryPayload(bytes([instance]) * 16, rest.get("terminating", False), found)
    return TelemetryRecord(request, 1_000, payload)


def metrics_of(name: str, value: int) -> bytes:
    metric = Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(as_int=value)]))
    scope = ScopeMetrics(metrics=[metric])
    return MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])]).SerializeToString()


def forwarder_of(bootstrap: str, **table: object) -> Forwarder:
    values = {"bootstrap.servers": bootstrap, "client.reconnect.backoff.max.ms": 200, **table}
    forwarder = odradek_forwarder(PluginConfig("plugins.kafka", values))
    assert isinstance(forwarder, Forwarder)
    return forwarder


def deliver(bootstrap: str, *batches: Sequence[TelemetryRecord], **table: object) -> list[Exception | None]:
    """Deliver batch after batch; return the exception of each call."""

    async def run() -> list[Exception | None]:
        forwarder = forwarder_of(bootstrap, **table)
        await forwarder.start()
        try:
            return [await attempt(forwarder, batch) for batch in batches]
        finally:
            await forwarder.close()

    return asyncio.run(run())


async def attempt(forwarder: Forwarder, batch: Sequence[TelemetryRecord]) -> Exception | None:
    try:
        await forwarder.deliver(batch)
    except (Retry, Reject) as error:
        return error
    return None


@contextmanager
def consumer_of(bootstrap: str) -> Iterator[Consumer]:
    options = {"bootstrap.servers": bootstrap, "group.id": "readers", "enable.metrics.push": False}
    consumer = Consumer(options)
    try:
        yield consumer
    finally:
        consumer.close()


def read(
    bootstrap: str, topic: str, count: int, wanted: Callable[[Message], bool] = lambda message: True
) -> list[Message]:
    """The first ``count`` messages of a topic."""
    found: list[Message] = []
    with consumer_of(bootstrap) as consumer:

        def topic_metadata() -> TopicMetadata | None:
            return consumer.list_topics(timeout=PATIENCE_S).topics.get(topic)

        def enough() -> bool:
            first = consumer.poll(0.1)
            messages = [] if first is None else [first, *consumer.consume(500, 0.0)]
            found.extend(each for each in messages if each.error() is None and wanted(each))
            return len(found) >= count

        exported = wait_until(topic_metadata, f"no topic {topic}")
        assert exported is not None
        consumer.assign([TopicPartition(topic, number, 0) for number in exported.partitions])
        wait_until(enough, lambda: f"{len(found)} of {count} in {topic}")
    return found[:count]
