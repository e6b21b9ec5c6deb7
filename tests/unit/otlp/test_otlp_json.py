"""OTLP/JSON as protobuf: the mapping of the specification, and hostile texts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Exemplar,
    ExponentialHistogramDataPoint,
    MetricsData,
    NumberDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import NotOtlp, metrics_of_json
from odradek.otlp.otlp_json import MAX_DEPTH


def request_of(value: Any) -> MetricsData:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return MetricsData.FromString(metrics_of_json(text))


def with_metric(metric: dict[str, Any]) -> dict[str, Any]:
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}


def point(**fields: Any) -> NumberDataPoint:
    """The data point of a request that has these fields."""
    request = request_of(with_metric({"gauge": {"dataPoints": [fields]}}))
    return request.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0]


def attribute(value: Any) -> Resource:
    """The Resource of a request that has one attribute with this value."""
    resource = {"attributes": [{"key": "k", "value": value}]}
    return request_of({"resourceMetrics": [{"resource": resource}]}).resource_metrics[0].resource


def test_the_example_of_the_specification() -> None:
    text = b"""{"resourceMetrics": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "my.service"}}]},
        "scopeMetrics": [{
            "scope": {"name": "my.library", "version": "1.0.0", "attributes": [
                {"key": "my.scope.attribute", "value": {"stringValue": "some scope attribute"}}]},
            "metrics": [
                {"name": "my.counter", "unit": "1", "description": "I am a Counter", "sum": {
                    "aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [
                        {"asDouble": 5, "startTimeUnixNano": "1544712660300000000",
                         "timeUnixNano": "1544712660300000000",
                         "attributes": [{"key": "a", "value": {"stringValue": "b"}}]}]}},
                {"name": "my.histogram", "histogram": {"aggregationTemporality": 1, "dataPoints": [
                    {"timeUnixNano": "1544712660300000000", "count": "2", "sum": 2, "bucketCounts": ["1", 1],
                     "explicitBounds": [1], "min": 0, "max": 2}]}},
                {"name": "my.exponential.histogram", "exponentialHistogram": {
                    "aggregationTemporality": 1, "dataPoints": [
                    {"count": 3, "sum": 10, "scale": 0, "zeroCount": 1,
                     "positive": {"offset": 1, "bucketCounts": [0, 2]}, "min": 0, "max": 5,
                     "zeroThreshold": 0}]}}]}]}]}"""

    (entry,) = request_of(text).resource_metrics

    (scope,) = entry.scope_metrics
    counter, histogram, exponential = scope.metrics
    assert entry.resource.attributes[0].value.string_value == "my.service"
    assert (scope.scope.name, scope.scope.version) == ("my.library", "1.0.0")
    assert (counter.sum.aggregation_temporality, counter.sum.is_monotonic) == (1, True)
    assert counter.sum.data_points[0].as_double == 5.0
    assert counter.sum.data_points[0].time_unix_nano == 1544712660300000000
    assert list(histogram.histogram.data_points[0].bucket_counts) == [1, 1]
    assert histogram.histogram.data_points[0].max == 2.0
    buckets = ExponentialHistogramDataPoint.Buckets(offset=1, bucket_counts=[0, 2])
    assert exponential.exponential_histogram.data_points[0] == ExponentialHistogramDataPoint(
        count=3, sum=10, scale=0, zero_count=1, positive=buckets,
        min=0, max=5, zero_threshold=0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [("7", 7), (7, 7), (7.0, 7), ("-9223372036854775808", -(2**63)), (2**63 - 1, 2**63 - 1), ("0", 0)],
)
def test_a_long_is_a_number_or_text(value: object, expected: int) -> None:
    found = point(asInt=value)

    assert found.as_int == expected
    assert found.WhichOneof("value") == "as_int"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1.0), (0.5, 0.5), ("1e3", 1000.0), ("Infinity", math.inf), ("-Infinity", -math.inf)],
)
def test_a_double_is_a_number_or_text(value: object, expected: float) -> None:
    assert point(asDouble=value).as_double == expected


def test_nan_is_text() -> None:
    assert math.isnan(point(asDouble="NaN").as_double)


def test_ids_are_hexadecimal() -> None:
    found = point(exemplars=[{"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "eee19b7ec3c1b174"}])

    assert found.exemplars[0] == Exemplar(
        trace_id=bytes.fromhex("5b8efff798038103d269b633813fc60c"), span_id=bytes.fromhex("eee19b7ec3c1b174")
    )


def test_values_of_attributes() -> None:
    value = {
        "arrayValue": {
            "values": [
                {"boolValue": False},
                {"intValue": "3"},
                {"doubleValue": 0.5},
                {"bytesValue": "-_8"},
                {"bytesValue": "+/8="},
                {"kvlistValue": {"values": [{"key": "x", "value": {"stringValue": "\u00e9"}}]}},
                {},
            ]
        }
    }

    found = attribute(value).attributes[0].value.array_value.values

    assert [each.WhichOneof("value") for each in found] == [
        "bool_value", "int_value", "double_value", "bytes_value", "bytes_value", "kvlist_value", None,
    ]  # fmt: skip
    assert (found[3].bytes_value, found[4].bytes_value) == (b"\xfb\xff", b"\xfb\xff")
    assert found[5].kvlist_value.values[0].value.string_value == "\u00e9"


def test_unknown_fields_original_names_and_null_are_ignored() -> None:
    found = request_of(
        {
            "resource_metrics": [{}],
            "future": {"deep": [1, 2, {}]},
            "resourceMetrics": [{"resource": None, "schemaUrl": "u", "scopeMetrics": []}],
        }
    )

    assert [entry.schema_url for entry in found.resource_metrics] == ["u"]


def test_an_empty_object_is_not_an_absent_one() -> None:
    (entry,) = request_of(with_metric({"name": "m", "gauge": {}})).resource_metrics

    assert entry.scope_metrics[0].metrics[0].WhichOneof("data") == "gauge"


def test_without_metrics_nothing_is_left() -> None:
    assert metrics_of_json(b"{}") == b""


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def test_values_may_be_nested() -> None:
    depth = (MAX_DEPTH - 4) // 2

    assert attribute(nested(depth)).attributes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b"[]", "MetricsData is not an object"),
        (b"{", "not JSON"),
        (b'{"resourceMetrics": {}}', "resourceMetrics: expected an array"),
        (b'{"resourceMetrics": [1]}', "ResourceMetrics is not an object"),
        (b'{"resourceMetrics": [{"schemaUrl": 1}]}', "schemaUrl: expected a string"),
        (b'{"resourceMetrics": [{"schemaUrl": "\\ud800"}]}', "schemaUrl"),
        (b'{"resourceMetrics": NaN}', "NaN is not a number of JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"resourceMetrics": [{"schemaUrl": ' + b"9" * 5_000 + b"}]}", "not JSON"),
    ],
    ids=range(12),
)
def test_a_hostile_text_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(NotOtlp, match=problem):
        metrics_of_json(text)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"asInt": "1.5"}, "whole number"),
        ({"asInt": 1.5}, "whole number"),
        ({"asInt": True}, "whole number"),
        ({"asInt": 2**63}, "out of range"),
        ({"asInt": "9" * 21}, "whole number"),
        ({"asInt": "\u0661"}, "whole number"),
        ({"asInt": []}, "whole number"),
        ({"timeUnixNano": "-1"}, "out of range"),
        ({"flags": 2**32}, "out of range"),
        ({"asDouble": "1e"}, "expected a number"),
        ({"asDouble": "1e999"}, "out of range"),
        ({"asDouble": 10**400}, "asDouble"),
        ({"asDouble": "nan"}, "expected a number"),
        ({"asDouble": False}, "expected a number"),
        ({"exemplars": [{"traceId": "xyz"}]}, "hexadecimal"),
        ({"exemplars": [{"traceId": "W47_95gDgQPSabYzgT_GDA=="}]}, "hexadecimal"),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(NotOtlp, match=problem):
        point(**fields)


@pytest.mark.parametrize(
    "value",
    [{"boolValue": 1}, {"bytesValue": "a"}, {"bytesValue": "*"}, {"stringValue": {}}, "text", nested(60)],
)
def test_an_attribute_that_does_not_fit_is_refused(value: Any) -> None:
    with pytest.raises(NotOtlp):
        attribute(value)


def test_an_enum_is_not_a_name() -> None:
    value = {"name": "m", "sum": {"aggregationTemporality": "AGGREGATION_TEMPORALITY_DELTA"}}

    with pytest.raises(NotOtlp, match=r"Sum\.aggregationTemporality: expected a whole number"):
        request_of(with_metric(value))
