"""OTLP/JSON compared with protobuf's own JSON where that is correct."""

from __future__ import annotations

import base64
import json
import math
import random
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Exemplar,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
    Summary,
    SummaryDataPoint,
)

from odradek_kafka.otlp_json import otlp_json

RANDOM_MESSAGES = 200
DEEPEST = 8
TEXTS = ("", "a", 'quote " and \\', "ü\u2028\x00", "org.apache.kafka.producer")
FLOATS = (0.0, -0.0, 1.5, -2.25e300, 1e-7, math.nan, math.inf, -math.inf)
NUMBERS: dict[int, tuple[int, ...]] = {
    FieldDescriptor.CPPTYPE_INT32: (0, -1, 2**31 - 1, -(2**31)),
    FieldDescriptor.CPPTYPE_UINT32: (0, 1, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (0, -1, 2**63 - 1, -(2**63)),
    FieldDescriptor.CPPTYPE_UINT64: (0, 1, 2**64 - 1),
}


def json_of(message: Message) -> Any:
    return json.loads(otlp_json(message.SerializeToString()))


def metrics_of(*metrics: Metric) -> MetricsData:
    return MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[ScopeMetrics(metrics=metrics)])])


def metric_json(metric: Metric) -> Any:
    return json_of(metrics_of(metric))["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]


def filled(message: Message, chance: random.Random, depth: int = 0) -> Message:
    """Random values in about half of the fields."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.5 or depth > DEEPEST:
            continue
        if field.is_repeated:
            for _number in range(chance.randrange(1, 3)):
                add(getattr(message, field.name), field, chance, depth)
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            filled(getattr(message, field.name), chance, depth + 1)
        else:
            setattr(message, field.name, value_of(field, chance))
    return message


def add(values: Any, field: Any, chance: random.Random, depth: int) -> None:
    if field.message_type is not None:
        filled(values.add(), chance, depth + 1)
    else:
        values.append(value_of(field, chance))


def value_of(field: Any, chance: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.randbytes(chance.choice((8, 16)))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return chance.choice(TEXTS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    if field.cpp_type in NUMBERS:
        return chance.choice(NUMBERS[field.cpp_type])
    return chance.choice(FLOATS)


def with_hexadecimal_ids(found: Any) -> Any:
    """Protobuf's JSON, corrected in the one point besides enums that OTLP defines differently."""
    if isinstance(found, list):
        return [with_hexadecimal_ids(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {
        key: base64.b64decode(value).hex() if key in ("traceId", "spanId") else with_hexadecimal_ids(value)
        for key, value in found.items()
    }


def test_any_message_is_protobufs_json_with_hexadecimal_ids_and_numbers_for_enums() -> None:
    chance = random.Random(714)
    for _number in range(RANDOM_MESSAGES):
        message = filled(MetricsData(), chance)

        found = json_of(message)

        wanted = json_format.MessageToDict(message, use_integers_for_enums=True)
        assert found == with_hexadecimal_ids(wanted)


def test_a_gauge_and_a_sum_are_written() -> None:
    point = NumberDataPoint(
        start_time_unix_nano=1_760_000_000_000_000_000, time_unix_nano=2**64 - 1, as_int=-5, flags=1
    )
    delta = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA

    gauge = metric_json(Metric(name="a", gauge=Gauge(data_points=[point])))
    total = metric_json(
        Metric(sum=Sum(data_points=[point], aggregation_temporality=delta, is_monotonic=True))
    )

    wanted = {
        "startTimeUnixNano": "1760000000000000000",
        "timeUnixNano": "18446744073709551615",
        "asInt": "-5",
        "flags": 1,
    }
    assert gauge == {"name": "a", "gauge": {"dataPoints": [wanted]}}
    assert total == {"sum": {"dataPoints": [wanted], "aggregationTemporality": 1, "isMonotonic": True}}


def test_zero_values_that_are_set_are_written() -> None:
    points = [NumberDataPoint(as_double=0.0), NumberDataPoint(as_int=0)]

    found = metric_json(Metric(gauge=Gauge(data_points=points)))

    assert found["gauge"]["dataPoints"] == [{"asDouble": 0.0}, {"asInt": "0"}]


def test_histograms_of_both_kinds_are_written() -> None:
    histogram = HistogramDataPoint(
        count=3, sum=1.5, bucket_counts=[1, 2], explicit_bounds=[0.5], min=0.0, max=1.0
    )
    exponential = ExponentialHistogramDataPoint(
        count=3,
        scale=-2,
        zero_count=1,
        zero_threshold=0.25,
        positive=ExponentialHistogramDataPoint.Buckets(offset=-1, bucket_counts=[2]),
    )

    explicit = metric_json(Metric(histogram=Histogram(data_points=[histogram])))
    powers = metric_json(Metric(exponential_histogram=ExponentialHistogram(data_points=[exponential])))

    assert explicit["histogram"]["dataPoints"] == [
        {
            "count": "3",
            "sum": 1.5,
            "bucketCounts": ["1", "2"],
            "explicitBounds": [0.5],
            "min": 0.0,
            "max": 1.0,
        }
    ]
    assert powers["exponentialHistogram"]["dataPoints"] == [
        {
            "count": "3",
            "scale": -2,
            "zeroCount": "1",
            "positive": {"offset": -1, "bucketCounts": ["2"]},
            "zeroThreshold": 0.25,
        }
    ]


def test_a_summary_is_written() -> None:
    quantile = SummaryDataPoint.ValueAtQuantile(quantile=0.99, value=7.0)

    found = metric_json(
        Metric(summary=Summary(data_points=[SummaryDataPoint(count=2, sum=9.0, quantile_values=[quantile])]))
    )

    assert found["summary"]["dataPoints"] == [
        {"count": "2", "sum": 9.0, "quantileValues": [{"quantile": 0.99, "value": 7.0}]}
    ]


def test_ids_are_hexadecimal() -> None:
    exemplar = Exemplar(as_double=1.0, trace_id=bytes(range(16)), span_id=bytes(range(240, 248)))

    found = metric_json(Metric(gauge=Gauge(data_points=[NumberDataPoint(exemplars=[exemplar])])))

    assert found["gauge"]["dataPoints"][0]["exemplars"] == [
        {"asDouble": 1.0, "spanId": "f0f1f2f3f4f5f6f7", "traceId": "000102030405060708090a0b0c0d0e0f"}
    ]


def test_an_empty_message_is_an_empty_object() -> None:
    assert otlp_json(b"") == b"{}"


def test_invalid_metrics_data_is_an_error() -> None:
    with pytest.raises(DecodeError):
        otlp_json(b"\xff\xff")
