"""Recorded pushes of Java and librdkafka clients, read by layout, by the field walk and by protobuf."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_payloads import topic_record

from odradek.testing.pushes import recorded, recorded_clients
from odradek_tables.decoder.decode import Decoder


@dataclass(frozen=True, slots=True)
class Seen:
    """The values of one data point in a payload."""

    name: str
    unit: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    time_unix_nano: int
    start_unix_nano: int
    value: str


def labels(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in attributes}


def by_protobuf(data: bytes) -> list[Seen]:
    return [
        Seen(
            metric.name,
            metric.unit,
            labels(point.attributes),
            labels(entry.resource.attributes),
            point.time_unix_nano,
            point.start_time_unix_nano,
            repr(getattr(point, point.WhichOneof("value") or "flags")),
        )
        for entry in MetricsData.FromString(data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
        for point in (*metric.gauge.data_points, *metric.sum.data_points)
    ]


def decoded(decoder: Decoder, payload: bytes) -> list[Seen]:
    rows = decoder.decode([topic_record(payload)]).points.to_pylist()
    return [
        Seen(
            row["name"],
            row["unit"],
            json.loads(row["attrs"]),
            json.loads(row["resource"]),
            row["time_unix_nano"],
            row["start_unix_nano"] or 0,
            repr(row["value"] if row["value_int"] is None else row["value_int"]),
        )
        for row in rows
    ]


@pytest.mark.parametrize("client", recorded_clients())
def test_points_equal_those_of_protobuf(client: str) -> None:
    payloads = [push.data for push in recorded(client)]
    decoder = Decoder()

    found = [decoded(decoder, payload) for payload in payloads]
    again = [decoded(decoder, payload) for payload in payloads]  # every layout is known now

    assert found == again == [by_protobuf(payload) for payload in payloads]
    assert sum(map(len, found)) > 40


@pytest.mark.parametrize("client", recorded_clients())
def test_layouts_of_a_client_repeat(client: str) -> None:
    payloads = [push.data for push in recorded(client)]
    alike = [second for first, second in pairwise(payloads) if len(first) == len(second)]
    decoder = Decoder()
    for payload in payloads:
        decoder.decode([topic_record(payload)])

    known = [decoder.shapes.find(payload) for payload in alike]

    assert all(shape is not None for shape in known)
