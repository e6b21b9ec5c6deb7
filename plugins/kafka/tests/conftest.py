"""A scripted producer, and pushes to send with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.testing import request_context

POLL_STEP_S = 0.001


def data_of(*names: str, **labels: str) -> bytes:
    """A serialized MetricsData of gauges."""
    attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in labels.items()]
    metrics = [Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(as_int=7)])) for name in names]
    entry = ResourceMetrics(
        resource=Resource(attributes=attributes), scope_metrics=[ScopeMetrics(metrics=metrics)]
    )
    return MetricsData(resource_metrics=[entry]).SerializeToString()


PUSH = data_of("org.apache.kafka.producer.record.send.rate")


def record_of(
    instance: int = 0,
    data: bytes = PUSH,
    *,
    client_id: str | None = "orders",
    received_ms: int = 0,
    terminating: bool = False,
) -> TelemetryRecord:
    request = request_context(
        listener_name="SASL",
        security_protocol="SASL_SSL",
        client_port=40_000,
        principal="User:ann",
        client_software_name="librdkafka",
        client_software_version="2.16.0",
        client_id=client_id,
        received_ms=received_ms,
    )
    payload = ClientTelemetryPayload(bytes([instance]) * 16, terminating=terminating, data=data)
    return TelemetryRecord(request, 1_000, payload)


@dataclass
class Sent:
    """One call of ``produce``."""

    topic: str
    value: bytes
    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int
    on_delivery: Callable[..., None]


Judge = Callable[[Sent, list[Sent]], Any]
"""The result of a message, given the message and all that are polled with it: None, a KafkaError, or
``HANG``.
"""
HANG = object()


@dataclass
class FakeProducer:
    """Reports in ``poll``, as confluent-kafka does, the script's result for everything produced until
    then.
    """

    judge: Judge = lambda sent, together: None
    refuse: Callable[[Sent], Exception | None] = lambda sent: None
    """The exception that ``produce`` itself raises."""
    sent: list[Sent] = field(default_factory=list)
    waiting: list[Sent] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    callbacks: dict[str, Any] = field(default_factory=dict)
    purged: int = 0
    batch: int = 0
    """The number of messages per poll; 0 for all."""

    def __call__(self, options: dict[str, str], **callbacks: Any) -> FakeProducer:
        self.options, self.callbacks = options, callbacks
        return self

    def produce(self, topic: str, value: bytes, key: bytes | None, **rest: Any) -> None:
        sent = Sent(topic, value, key, **rest)
        error = self.refuse(sent)
        if error is not None:
            raise error
        self.sent.append(sent)
        self.waiting.append(sent)

    def poll(self, timeout_s: float) -> int:
        if len(self.waiting) < self.batch or not self.waiting:
            time.sleep(POLL_STEP_S)
            return 0
        together, self.waiting = self.waiting, []
        for sent in together:
            outcome = self.judge(sent, together)
            if outcome is not HANG:
                sent.on_delivery(outcome, object())
        return len(together)

    def purge(self, **which: bool) -> None:
        self.purged += 1


def error(name: str, **flags: bool) -> KafkaError:
    return KafkaError(getattr(KafkaError, name), f"{name} it is", **flags)


@dataclass(frozen=True)
class Kit:
    """Helpers for the tests; tests do not import each other's files."""

    data: Callable[..., bytes] = data_of
    record: Callable[..., TelemetryRecord] = record_of
    producer: type[FakeProducer] = FakeProducer
    error: Callable[..., KafkaError] = error
    hang: object = HANG
    run: Callable[..., Any] = asyncio.run
    raised: type[KafkaException] = KafkaException


@pytest.fixture
def kit() -> Kit:
    return Kit()
