"""Pushes that a host could pass to a plugin, from plain to hostile, each with a number to recognize it by."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterable, Mapping

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

from odradek.plugin import ClientTelemetryPayload, ConnectionContext, RequestContext, TelemetryRecord

MARK = re.compile(rb"contract\.push\.(\d+)\.")
INTERVAL_MS = 1_000
RECEIVED_MS = 1_760_000_000_000
HUGE_METRICS, HUGE_TEXT = 4_096, "x" * 1_024
LONG_TEXT = "x" * 32_767
"""The longest string of Kafka's protocol."""
ONE_CLIENT = "their labels claim that they come from one client"
SAME_NAMES = "labels have the names of attributes"
GARBAGE = b"\xff\xfe no protobuf \x00" * 7
SPOOFED = {"client_instance_id": "AAAAAAAAAAAAAAAAAAAAAQ", "client_id": "orders", "principal": "User:admin"}
LABELS = {"client_id": "orders", "node_id": "1", "topic": "static"}
ODD_TEXT = 'o"r\\d\ne\x00r,s=\u202e\U0001f600'
"""A legal client id: it may be any UTF-8."""


def connection_of(principal: str = "User:alice", **fields: str) -> ConnectionContext:
    """A connection of a client."""
    return WatchedConnection(
        connection_id="127.0.0.1:9092-127.0.0.1:40000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=40_000,
        node_id=1,
        principal=principal,
        **fields,
    )


def context_of(
    client_id: str | None = "orders", connection: ConnectionContext | None = None, correlation_id: int = 1
) -> RequestContext:
    """The context of a client's request."""
    return WatchedContext(
        connection=connection or connection_of(),
        api_key=72,
        api_version=0,
        correlation_id=correlation_id,
        client_id=client_id,
        received_ms=RECEIVED_MS,
    )


class Samples:
    """Creates numbered pushes. Two instances never use the same number."""

    def __init__(self) -> None:
        self.numbers = itertools.count(random.getrandbits(40) << 20)

    def push(
        self,
        *,
        data: bytes | None = None,
        labels: Mapping[str, str] | None = None,
        context: RequestContext | None = None,
        terminating: bool = False,
        metrics: int = 3,
        description: str = "",
        attributes: Mapping[str, str] | None = None,
    ) -> TelemetryRecord:
        """Create a push of a new client instance. ``data``, if given, replaces the generated metrics."""
        number = next(self.numbers)
        return TelemetryRecord(
            context=context or context_of(correlation_id=number),
            push_interval_ms=INTERVAL_MS,
            payload=WatchedPayload(
                client_instance_id=number.to_bytes(16),
                terminating=terminating,
                data=metrics_data(number, labels or {}, metrics, description, attributes or {})
                if data is None
                else data,
            ),
        )

    def pushes(self, count: int) -> list[TelemetryRecord]:
        """Create plain pushes."""
        return [self.push() for _ in range(count)]

    def terminating(self) -> list[TelemetryRecord]:
        """Three pushes of which the second one is terminating."""
        return [self.push(), self.push(terminating=True), self.push()]

    def spoofed(self) -> list[TelemetryRecord]:
        """Create pushes of three users whose labels all claim to come from one client of an administrator."""
        return [
            self.push(labels=SPOOFED, context=context_of("orders", connection_of(principal)))
            for principal in ("User:admin", "User:mallory", "User:ANONYMOUS")
        ]

    def with_same_names(self) -> list[TelemetryRecord]:
        """Create pushes whose labels have the names of attributes of their data points, exactly or nearly."""
        return [
            self.push(labels=LABELS, attributes=attributes)
            for attributes in ({"topic": "orders", "node_id": "node-1"}, {"node.id": "1"}, LABELS)
        ]

    def huge(self) -> TelemetryRecord:
        """Create a push of more than four MiB, more than a host accepts by default."""
        return self.push(metrics=HUGE_METRICS, description=HUGE_TEXT)


class WatchedPayload(ClientTelemetryPayload):
    """A payload that supports weak references, to detect whether a plugin keeps it."""

    __slots__ = ("__weakref__",)


class WatchedContext(RequestContext):
    __slots__ = ("__weakref__",)


class WatchedConnection(ConnectionContext):
    __slots__ = ("__weakref__",)


def metrics_data(
    number: int, labels: Mapping[str, str], metrics: int, description: str, attributes: Mapping[str, str]
) -> bytes:
    """A serialized MetricsData of gauges whose names contain the number of the push."""
    point = NumberDataPoint(as_double=number, attributes=key_values(attributes))
    named = [
        Metric(
            name=f"contract.push.{number}.{index}", description=description, gauge=Gauge(data_points=[point])
        )
        for index in range(metrics)
    ]
    resource = Resource(attributes=key_values(labels)) if labels else None
    entry = ResourceMetrics(resource=resource, scope_metrics=[ScopeMetrics(metrics=named)])
    return MetricsData(resource_metrics=[entry]).SerializeToString()


def key_values(texts: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in texts.items()]


def numbers_in(parts: Iterable[bytes]) -> set[int]:
    """The numbers of the pushes whose metric names occur in the bytes."""
    return {int(found) for part in parts for found in MARK.findall(part)}


def numbers_of(records: Iterable[TelemetryRecord]) -> set[int]:
    """The numbers of the pushes."""
    return numbers_in(record.payload.data for record in records)
