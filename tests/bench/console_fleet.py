"""Pushes of a large fleet for the benches of the console: producers and consumers of several libraries, with
few and many series, short and long names, in groups of one to hundreds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData

from odradek.findings.client_metrics import client_metrics
from odradek.findings.troubles import JAVA
from odradek.plugin import (
    ClientTelemetryPayload,
    Origin,
    TelemetryRecord,
)
from odradek.testing import request_context
from odradek_console.engine.groups import ASSIGNED

INTERVAL_S = 60
NAMES = 120
SIZES = (0.2, 0.6, 1.1, 2.1)
"""Series of a client in proportion to the mean."""
LIBRARIES = (
    *((JAVA, each) for each in ("3.9.1", "4.1.0", "4.3.0")),
    ("librdkafka", "2.12.1"),
    ("confluent-kafka-python-rdkafka", "2.12.1-rdkafka-2.12.1"),
    ("kgo", "v1.20.3"),
)
LONGEST = 249
"""Characters of a name."""
PARTITIONS = 4
"""Of a healthy member, which keeps them."""
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
            topic = number // len(known)
            attribute.key, attribute.value.string_value = "topic", f"orders-{topic}{'.retry' * (topic % 7)}"
    return data


@dataclass(frozen=True, slots=True)
class Member:
    """What stays the same of a client."""

    role: str
    size: float
    client_id: str
    group: str
    library: tuple[str, str]


def member(client: int) -> Member:
    """A client: every second one is a consumer. A few groups have hundreds of members, most have some."""
    chance = random.Random(client)
    role = "consumer" if client % 2 else "producer"
    group = f"billing-{int(1 / (chance.random() ** 1.1 + 0.001))}" if client % 2 else ""
    name = f"{role}-{client}-" + "x" * int(chance.lognormvariate(2.0, 1.2))
    return Member(role, chance.choice(SIZES), name[:LONGEST], group, chance.choice(LIBRARIES))


class Pushes:
    """Makes the records of a fleet in order.

    Args:
        clients: Client instances.
        series: Series of each, on average.
        begin_s: Epoch seconds of the first push.
    """

    def __init__(self, clients: int, series: int, begin_s: int) -> None:
        self.clients = clients
        self.begin_s = begin_s
        self.members = [member(each) for each in range(clients)]
        self.templates = {
            (role, size): template(int(series * size), role, "-" if role == "consumer" else "")
            for role in ("producer", "consumer")
            for size in SIZES
        }
        self.offset = 0

    def turn(self, turn: int) -> Iterator[TelemetryRecord]:
        """A push of each client."""
        for client in range(self.clients):
            yield self.push(client, turn)

    def push(self, client: int, turn: int) -> TelemetryRecord:
        """The push of a client in a turn. Its values are those of a healthy client, but for one in fifty."""
        at_s = self.begin_s + turn * INTERVAL_S + client * INTERVAL_S // self.clients
        who = self.members[client]
        data = self.templates[who.role, who.size]
        entry = data.resource_metrics[0]
        entry.resource.attributes[0].value.string_value = f"{client:022d}"
        if who.group:
            entry.resource.attributes[1].value.string_value = who.group
        for metric in entry.scope_metrics[0].metrics:
            point = (metric.sum.data_points or metric.gauge.data_points)[0]
            point.start_time_unix_nano = (at_s - INTERVAL_S) * 10**9
            point.time_unix_nano = at_s * 10**9
            point.as_double = value_of(metric, is_troubled=not client % 50)
        request = request_context(
            connection_id=f"c{client}",
            client_address=f"10.0.{client >> 8}.{client & 255}",
            client_software_name=who.library[0],
            client_software_version=who.library[1],
            principal=f"User:app-{client % 40}",
            client_id=who.client_id,
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
    if metric.name == ASSIGNED:
        return PARTITIONS
    return 0.5 + random.random() * (9.5 if metric.HasField("sum") else 0.1)
