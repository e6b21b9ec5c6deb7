"""MetricsData merged and split as bytes, and messages in their own descriptor pools."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.descriptor_pool import Default
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

import odradek.otlp
from odradek.otlp import (
    NotOtlp,
    delimited,
    merged_resources,
    merged_scopes,
    message_classes,
    metric_name,
    resource_metrics,
    shallow_resource_metrics,
    shallow_scope_metrics,
)

SCOPE = InstrumentationScope(name="java")


def metrics(*names: str) -> list[Metric]:
    return [Metric(name=name) for name in names]


def entry(*names: str, schema_url: str = "") -> ResourceMetrics:
    scope = ScopeMetrics(scope=SCOPE, metrics=metrics(*names))
    return ResourceMetrics(
        resource=Resource(dropped_attributes_count=1), scope_metrics=[scope], schema_url=schema_url
    )


ENTRIES = [entry("a"), entry("b", "c", schema_url="https://one")]
DATA = MetricsData(resource_metrics=ENTRIES).SerializeToString()
RESOURCE = ENTRIES[0].resource.SerializeToString()


def test_resources_are_merged_and_their_scopes_stay_separate() -> None:
    whole = merged_resources(DATA)

    assert list(whole.resource) == [RESOURCE, RESOURCE]
    assert list(whole.scope_metrics) == [each.scope_metrics[0].SerializeToString() for each in ENTRIES]
    assert list(whole.schema_url) == [b"https://one"]


def test_scopes_are_merged_too() -> None:
    whole = merged_scopes(DATA)

    scopes = whole.scope_metrics
    assert list(whole.resource) == [RESOURCE, RESOURCE]
    assert list(scopes.scope) == [SCOPE.SerializeToString()] * 2
    assert [metric_name(metric) for metric in scopes.metrics] == [b"a", b"b", b"c"]


def test_merged_messages_are_written_in_field_order() -> None:
    written = merged_scopes(DATA).scope_metrics.SerializeToString()

    read = ScopeMetrics.FromString(written)
    assert written.startswith(delimited(0x0A, SCOPE.SerializeToString()) * 2)
    assert (read.scope.name, [metric.name for metric in read.metrics]) == ("java", ["a", "b", "c"])


def test_entries_are_split_one_by_one() -> None:
    found = [
        (
            list(whole.resource),
            [metric_name(metric) for scope in whole.scope_metrics for metric in names_of(scope)],
            list(whole.schema_url),
        )
        for whole in map(shallow_resource_metrics, resource_metrics(DATA))
    ]

    assert found == [([RESOURCE], [b"a"], []), ([RESOURCE], [b"b", b"c"], [b"https://one"])]


def names_of(scope: bytes) -> list[bytes]:
    return list(shallow_scope_metrics(scope).metrics)


def test_empty_data_give_an_empty_result() -> None:
    assert list(merged_resources(b"").resource) == []
    assert list(merged_scopes(b"").scope_metrics.metrics) == []
    assert list(resource_metrics(b"")) == []
    assert metric_name(b"") == b""


@pytest.mark.parametrize(
    "parse",
    [
        merged_resources,
        merged_scopes,
        resource_metrics,
        shallow_resource_metrics,
        shallow_scope_metrics,
        metric_name,
    ],
)
def test_invalid_bytes_are_refused(parse: Callable[[bytes], object]) -> None:
    with pytest.raises(NotOtlp, match="not MetricsData"):
        parse(b"\x0a\x05cut")


def test_messages_of_equal_names_do_not_clash() -> None:
    numbers = message_classes("test.pool", {"M": {"n": (1, "int64")}})["M"]
    lists = message_classes("test.pool", {"M": {"n": (1, "Inner*")}, "Inner": {"text": (1, "string")}})["M"]

    number = numbers.FromString(b"\x08\x07")
    listed = lists.FromString(delimited(0x0A, delimited(0x0A, b"x")) * 2)
    unknown = number.FromString(b"\x08\x07\x10\x01").SerializeToString()

    assert number.n == 7  # type: ignore[attr-defined]
    assert [inner.text for inner in listed.n] == ["x", "x"]  # type: ignore[attr-defined]
    assert unknown == b"\x08\x07\x10\x01"
    with pytest.raises(KeyError):
        Default().FindMessageTypeByName("test.pool.M")


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_a_field_is_written_as_protobuf_writes_it(length: int) -> None:
    value = "x" * length

    written = delimited(0x0A, value.encode())

    assert Metric.FromString(written).name == value
    assert written == (Metric(name=value).SerializeToString() or b"\x0a\x00")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        odradek.otlp.nothing_of_that_name  # noqa: B018
