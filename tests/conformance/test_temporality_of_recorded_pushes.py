"""Recorded pushes of real clients: the engine's totals equal a plain sum of their deltas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp.labeled_payload import labeler
from odradek.plugin import TelemetryRecord
from odradek.temporality import Engine, Limits
from odradek.testing.pushes import recorded, recorded_clients

LABELS = {"client_id": "orders", "principal": "User:orders", "client_source_port": "53211"}
REPEATED = 3
CLIENTS = sorted(set(recorded_clients()))


def sums(data: bytes) -> Iterator[tuple[Any, Any]]:
    """Each point of a sum and its stream."""
    for entry in MetricsData.FromString(data).resource_metrics:
        for scope in entry.scope_metrics:
            for metric in scope.metrics:
                for point in metric.sum.data_points:
                    attributes = sorted((each.key, str(each.value)) for each in point.attributes)
                    yield (scope.scope.name, metric.name, metric.unit, str(attributes)), point


def value(point: Any) -> float:
    return float(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double)


def records(client: str) -> list[TelemetryRecord]:
    """The pushes of one client instance several times, labeled as by a host."""
    label = labeler(LABELS)
    found = []
    for push in recorded(client):
        record = push.record
        record.payload = type(record.payload)(
            record.payload.client_instance_id, record.payload.terminating, label(push.data)
        )
        found.append(record)
    return found * REPEATED


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("layouts", [0, 2_048])
def test_totals_are_the_sum_of_the_deltas(client: str, layouts: int) -> None:
    engine = Engine(Limits(max_layouts=layouts))
    plain: dict[bytes, dict[Any, float]] = defaultdict(lambda: defaultdict(float))

    for record in records(client):
        totals = plain[record.payload.client_instance_id]
        for stream, point in sums(record.payload.data):
            totals[stream] += value(point)
        converted = engine.convert(record)

        found = {stream: value(point) for stream, point in sums(converted)}
        assert found == {stream: totals[stream] for stream in found}
        assert len(list(sums(converted))) == len(list(sums(record.payload.data)))

    assert len(engine.layouts.by_number) == 0 if not layouts else len(engine.layouts.by_number) > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_known_layout_gives_the_bytes_that_protobuf_would_give(client: str) -> None:
    quick, slow = Engine(), Engine(Limits(max_layouts=0))

    for record in records(client):
        fast, general = quick.convert(record), slow.convert(record)
        assert MetricsData.FromString(fast) == MetricsData.FromString(general)

    assert quick.counts == slow.counts
