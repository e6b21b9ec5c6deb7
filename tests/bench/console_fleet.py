"""Pushes of a large fleet for the benches of the console: Java producers, and consumers in groups of ten."""

from __future__ import annotations

import random
from collections.abc import Iterator

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData

from odradek.findings.client_metrics import client_metrics
from odradek.findings.troubles import JAVA
from odradek.plugin import (
    ClientTelemetryPayload,
    Origin,
    TelemetryRecord,
)
from odradek.testing import request_context

INTERVAL_S = 60
NAMES = 120
MEMBERS = 10
TROUBLES = ("creation", "error", "exhausted", "failed", "rebalance", "retry", "throttle")
"""Parts of the names of metrics that are zero for healthy clients."""


def template(series: int, role: str = "producer", group: str = "") -> MetricsData:
    """A push of a Java client with this many series, most of them with a label."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    for key, text in (("client_instance_id", "-" * 22), ("group_id", group)):
        if text:
            entry.resource.attributes.add(key=key).value.string_value = text
    metrics = entry.scope_metrics.add().metrics
    known = [each for each in client_metrics().values() if f".{role}." in each.name][:NAMES]
    for number in range(series):
        metric = metrics.add(name=known[number % len(known)].name)
        if known[number % len(known)].kind == "sum":
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = (
                True,
                AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA,
            )
            point = metric.sum.data_points.add()
        else:
            point = metric.gauge.data_points.add()
        if number >= len(known):
            attribute = point.attributes.add()
            attribute.key, attribute.value.string_value = "topic", f"orders-{number // len(known)}"
    return data


class Pushes:
    """Makes the records of a fleet in order.

    Args:
        clients: Client instances; every second one is a consumer.
        series: Series of each.
        begin_s: Epoch seconds of the first push.
    """

    def __init__(self, clients: int, series: int, begin_s: int) -> None:
        self.clients = clients
        self.begin_s = begin_s
        self.templates = template(series), template(series, "consumer", "-")
        self.offset = 0

    def turn(self, turn: int) -> Iterator[TelemetryRecord]:
        """A push of each client."""
        for client in range(self.clients):
            yield self.push(client, turn)

    def push(self, client: int, turn: int) -> TelemetryRecord:
        """The push of a client in a turn. Its values are those of a healthy client, but for one in fifty."""
        at_s = self.begin_s + turn * INTERVAL_S + client * INTERVAL_S // self.clients
        is_consumer = client % 2
        data = self.templates[is_consumer]
        entry = data.resource_metrics[0]
        entry.resource.attributes[0].value.string_value = f"{client:022d}"
        group = f"billing-{client // (2 * MEMBERS)}" if is_consumer else ""
        if is_consumer:
            entry.resource.attributes[1].value.string_value = group
        for metric in entry.scope_metrics[0].metrics:
            point = (metric.sum.data_points or metric.gauge.data_points)[0]
            point.start_time_unix_nano = (at_s - INTERVAL_S) * 10**9
            point.time_unix_nano = at_s * 10**9
            point.as_double = value_of(metric, is_troubled=not client % 50)
        request = request_context(
            connection_id=f"c{client}",
            client_address=f"10.0.{client >> 8}.{client & 255}",
            client_software_name=JAVA,
            client_software_version="4.3.0",
            principal=f"User:app-{client % 40}",
            client_id=f"{'consumer' if is_consumer else 'orders'}-{client}",
            received_ms=at_s * 1000,
        )
        payload = ClientTelemetryPayload(client.to_bytes(16, "big"), False, data.SerializeToString())
        record = TelemetryRecord(request, INTERVAL_S * 1000, payload)
        record.position = Origin("t", 0, self.offset)
        self.offset += 1
        return record


def value_of(metric: Metric, *, is_troubled: bool) -> float:
    """A value that no finding minds; or one of any size."""
    if is_troubled:
        return random.random() * 100
    if any(word in metric.name for word in TROUBLES):
        return 0.0
    return 0.5 + random.random() * (9.5 if metric.HasField("sum") else 0.1)
