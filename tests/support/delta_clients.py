"""Clients that push delta metrics at chosen seconds, into an engine that makes them cumulative."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, NumberDataPoint

from odradek.otlp import NotOtlp
from odradek.plugin import ClientTelemetryPayload, Origin, TelemetryRecord
from odradek.temporality import Changes, Engine, Series
from support.telemetry_records import push_request

EPOCH_S = 1_000_000
"""Second 0 of the scenarios, since 0 itself is a missing time."""
INTERVAL_S = 60
A, B = b"A" * 16, b"B" * 16
TEACHER = b"T" * 16
TOPIC = "topic-1"

Way = Literal["parsed", "layout"]
Attributes = Mapping[str, str | int]


def attribute(key: str, value: str | int) -> KeyValue:
    found = KeyValue(key=key)
    if isinstance(value, str):
        found.value.string_value = value
    else:
        found.value.int_value = value
    return found


def ms(second: float) -> int:
    """Epoch milliseconds of a second of the scenarios."""
    return int((EPOCH_S + second) * 1000)


def nanos(second: float) -> int:
    return int((EPOCH_S + second) * 1_000_000_000)


def point(
    value: float | None, start: float | None, time: float, attributes: Attributes | None = None
) -> NumberDataPoint:
    """A data point over (start, time] in seconds; without a start for None."""
    found = NumberDataPoint(time_unix_nano=nanos(time))
    if start is not None:
        found.start_time_unix_nano = nanos(start)
    if isinstance(value, int):
        found.as_int = value
    elif value is not None:
        found.as_double = value
    found.attributes.extend(attribute(*each) for each in (attributes or {}).items())
    return found


def counter(
    *points: NumberDataPoint, name: str = "c", temporality: int = 1, is_monotonic: bool = True
) -> Metric:
    metric = Metric(name=name)
    metric.sum.data_points.extend(points)
    metric.sum.aggregation_temporality = temporality  # type: ignore[assignment]
    metric.sum.is_monotonic = is_monotonic
    return metric


def d(value: float, start: float | None, time: float, **attributes: str | int) -> Metric:
    """The counter ``c`` with one delta."""
    return counter(point(value, start, time, attributes))


def cumulative(value: float, start: float | None, time: float) -> Metric:
    return counter(point(value, start, time), temporality=2)


def gauge(*values: float, time: float = 60) -> Metric:
    metric = Metric(name="g")
    metric.gauge.data_points.extend(point(value, None, time) for value in values)
    return metric


def metrics_data(metrics: Iterable[Metric], labels: Attributes) -> MetricsData:
    """A push with one Resource and one scope, as a host has labeled it."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    entry.resource.attributes.extend(attribute(*each) for each in labels.items())
    entry.scope_metrics.add().metrics.extend(metrics)
    return data


@dataclass
class Store:
    """The contents of a database, committed in one step."""

    shapes: dict[bytes, bytes] = field(default_factory=dict)
    clients: dict[bytes, bytes] = field(default_factory=dict)
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    def commit(self, changes: tuple[Changes, list[Origin]]) -> None:
        changed, positions = changes
        for digest in changed.unused_shapes:
            self.shapes.pop(digest)
        self.shapes.update(changed.shapes)
        for instance_id, state in changed.clients.items():
            if state is None:
                self.clients.pop(instance_id, None)
            else:
                self.clients[instance_id] = state
        self.positions.update({(each.topic_id, each.partition): each.offset for each in positions})

    def load(self, engine: Engine) -> None:
        origins = [Origin(*partition, offset) for partition, offset in self.positions.items()]
        engine.restore(self.shapes, self.clients, origins)


class Scene:
    """An engine and the log that it reads."""

    def __init__(self, way: Way = "parsed", **settings: Any) -> None:
        """Prepare.

        Args:
            way: By ``layout`` each push has a layout that the engine has learned before.
            settings: Of the engine.
        """
        self.way = way
        self.settings = settings
        self.engine = Engine(**settings)
        self.next_offset = 0

    def record(
        self,
        *metrics: Metric,
        at: float = 60,
        instance: bytes = A,
        labels: Attributes | None = None,
        data: bytes | None = None,
        terminating: bool = False,
    ) -> TelemetryRecord:
        """A push that the host receives at a second."""
        if data is None:
            data = metrics_data(metrics, labels or {"client_id": "orders"}).SerializeToString()
        return TelemetryRecord(
            push_request(received_ms=ms(at)),
            INTERVAL_S * 1000,
            ClientTelemetryPayload(instance, terminating, data if metrics or data else b""),
        )

    def push(
        self, *metrics: Metric, offset: int | None = None, topic: str = TOPIC, **facts: Any
    ) -> MetricsData:
        """Push metrics; return what the engine makes of them."""
        if not metrics and "data" not in facts:
            facts["data"] = b""
        record = self.record(*metrics, **facts)
        if self.way == "layout":
            self.teach(record)
        if offset is None:
            offset = self.next_offset
        self.next_offset = offset + 1
        record.position = Origin(topic, 0, offset)
        return MetricsData.FromString(self.engine.convert(record))

    def teach(self, record: TelemetryRecord) -> None:
        """Let the engine see the same layout from another client, without a trace in the counts."""
        counts = self.engine.counts
        before = dataclasses.asdict(counts)
        payload = ClientTelemetryPayload(TEACHER, False, record.payload.data)
        with contextlib.suppress(NotOtlp):
            self.engine.convert(dataclasses.replace(record, payload=payload))
        self.engine.clients.forget(TEACHER)
        for name, value in before.items():
            setattr(counts, name, value)

    def series(self, instance: bytes = A, at: float | None = None) -> list[Series]:
        now_ms = None if at is None else ms(at)
        return list(self.engine.series(instance, now_ms))

    def values(self, instance: bytes = A, at: float | None = None) -> list[tuple[str, float, float]]:
        """Name, total and start in seconds of each stream."""
        return [
            (each.identity.name, each.value, each.start_ns / 1e9 - EPOCH_S)
            for each in self.series(instance, at)
        ]

    def totals(self, instance: bytes = A, at: float | None = None) -> dict[str, float]:
        return {name: value for name, value, _ in self.values(instance, at)}

    def restart(self, store: Store) -> None:
        """Replace the engine by one that has what was committed."""
        self.engine = Engine(**self.settings)
        store.load(self.engine)


def points_of(data: MetricsData) -> list[NumberDataPoint]:
    """All numbers of a push."""
    return [
        found
        for entry in data.resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
        for found in (metric.sum if metric.HasField("sum") else metric.gauge).data_points
    ]
