"""Merged and filtered bytes hold the same metrics, with fewer repetitions of the same Resource."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import NotOtlp
from odradek_otlp import metrics_bytes
from odradek_otlp.metrics_bytes import filtered, merged

Place = tuple[bytes, str, bytes, str, str]
"""Resource, its schema URL, scope, its schema URL, name of a metric."""


def places(data: bytes) -> list[Place]:
    """The place of each metric."""
    return [
        (
            entry.resource.SerializeToString(),
            entry.schema_url,
            scope.scope.SerializeToString(),
            scope.schema_url,
            metric.name,
        )
        for entry in MetricsData.FromString(data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    ]


def entry(client: str, *scopes: ScopeMetrics, schema_url: str = "") -> ResourceMetrics:
    found = ResourceMetrics(scope_metrics=scopes, schema_url=schema_url)
    if client:
        found.resource.attributes.add(key="client_id").value.string_value = client
    return found


def scope(library: str, *names: str, schema_url: str = "") -> ScopeMetrics:
    found = ScopeMetrics(metrics=[Metric(name=name) for name in names], schema_url=schema_url)
    if library:
        found.scope.CopyFrom(InstrumentationScope(name=library))
    return found


def data_of(entries: Iterable[ResourceMetrics]) -> bytes:
    return MetricsData(resource_metrics=entries).SerializeToString()


def shape(data: bytes) -> list[list[int]]:
    """The number of metrics in each ScopeMetrics of each ResourceMetrics."""
    entries = MetricsData.FromString(data).resource_metrics
    return [[len(scope.metrics) for scope in entry.scope_metrics] for entry in entries]


def test_pushes_of_one_client_become_one_entry() -> None:
    push = data_of([entry("orders", scope("rdkafka", "a", "b"))])

    smaller = merged(push * 5)

    assert shape(smaller) == [[10]]
    assert places(smaller) == places(push) * 5
    assert len(smaller) < len(push) * 5


def test_missing_scopes_are_equal() -> None:
    data = data_of([entry("orders", *(scope("", f"metric.{number}") for number in range(150)))])

    smaller = merged(data)

    assert shape(smaller) == [[150]]
    assert places(smaller) == places(data)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("a", scope("", "x")), entry("b", scope("", "y"))], [[1], [1]]),
        ([entry("a", scope("", "x")), entry("", scope("", "y"))], [[1], [1]]),
        ([entry("a", scope("s", "x")), entry("a", scope("", "y"))], [[1, 1]]),
        ([entry("a", scope("s", "x"), scope("t", "y"), scope("s", "z"))], [[2, 1]]),
        ([entry("a", scope("", "x"), schema_url="1"), entry("a", scope("", "y"))], [[1], [1]]),
        ([entry("a", scope("", "x"), schema_url="1"), entry("a", scope("", "y"), schema_url="1")], [[2]]),
        ([entry("a", scope("s", "x", schema_url="1"), scope("s", "y"))], [[1, 1]]),
        ([entry("a", scope("", "x")), entry("b", scope("", "y")), entry("a", scope("", "z"))], [[2], [1]]),
        ([entry("", scope("", "x")), entry("", scope("", "y"))], [[2]]),
    ],
)
def test_merging_keeps_different_resources_and_scopes_separate(
    entries: list[ResourceMetrics], expected: list[list[int]]
) -> None:
    data = data_of(entries)

    smaller = merged(data)

    assert shape(smaller) == expected
    assert sorted(places(smaller)) == sorted(places(data))


def test_any_mixture_keeps_each_metric_in_its_place() -> None:
    chance = random.Random(5)
    for _ in range(300):
        data = data_of(
            entry(
                chance.choice(["", "a", "b"]),
                *(
                    scope(
                        chance.choice(["", "s", "t"]),
                        *(str(chance.random()) for _ in range(chance.randrange(3))),
                        schema_url=chance.choice(["", "", "1"]),
                    )
                    for _ in range(chance.randrange(4))
                ),
                schema_url=chance.choice(["", "", "1"]),
            )
            for _ in range(chance.randrange(5))
        )

        smaller = merged(data)

        assert sorted(places(smaller)) == sorted(places(data))
        assert len(smaller) <= len(data)
        assert sorted(places(filtered(data, (b"0.1", b"0.25")))) == sorted(
            place for place in places(data) if place[-1].startswith(("0.1", "0.25"))
        )


def test_a_resource_in_two_fields_is_one_resource() -> None:
    halves = [entry("orders").resource.SerializeToString(), entry("7").resource.SerializeToString()]
    fields = b"".join(b"\x0a" + bytes([len(half)]) + half for half in halves)
    metrics = b"\x12" + bytes([len(body := scope("", "x").SerializeToString())]) + body
    data = b"\x0a" + bytes([len(fields + metrics)]) + fields + metrics

    smaller = merged(data * 2)

    assert shape(smaller) == [[2]]
    assert places(smaller) == places(data) * 2


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\x0a\x05abc", b"\x0a\x02\x12\x7f"])
def test_bytes_that_cannot_be_merged_are_unchanged(data: bytes) -> None:
    smaller = merged(data)

    assert smaller == data


@pytest.mark.parametrize(
    "entries",
    [
        [entry("a", scope("s", "x"), scope("t", "y"), scope("s", "z"), scope("t", "z"))],
        [entry("a"), entry("b"), entry("a"), entry("b", scope("s", "x"))],
    ],
)
def test_too_many_entries_are_not_merged(
    monkeypatch: pytest.MonkeyPatch, entries: list[ResourceMetrics]
) -> None:
    monkeypatch.setattr(metrics_bytes, "MAX_ENTRIES", 3)
    data = data_of(entries)

    smaller = merged(data)

    assert smaller == data


@pytest.mark.parametrize("library", ["", "rdkafka"])
def test_a_filter_keeps_metrics_with_its_prefixes(library: str) -> None:
    long = "producer." + "x" * 200
    names = ["producer.a", "consumer.a", "producer.b", "producers", long, "", "admin.producer.c"]
    data = data_of([entry("orders", scope(library, *names))])

    kept = filtered(data, (b"producer.", b"nobody."))

    assert [place[-1] for place in places(kept)] == ["producer.a", "producer.b", long]
    assert places(kept)[0][:-1] == places(data)[0][:-1]


def test_a_name_after_other_fields_is_found() -> None:
    metric = b"\x12\x01d" + b"\x0a\x01a"
    scope_metrics = b"\x12" + bytes([len(metric)]) + metric
    data = b"\x0a" + bytes([len(scope_metrics) + 2]) + b"\x12" + bytes([len(scope_metrics)]) + scope_metrics

    assert places(filtered(data, (b"a",)))[0][-1] == "a"
    assert filtered(data, (b"d",)) == b""


def test_a_filter_without_a_match_leaves_nothing() -> None:
    data = data_of([entry("a", scope("", "x")), entry("b", scope("", "y"))])

    assert filtered(data, (b"z",)) == b""


def test_a_filter_needs_metrics() -> None:
    with pytest.raises(NotOtlp):
        filtered(b"\xff\xff", (b"a",))


def test_an_empty_resource_equals_a_missing_one() -> None:
    data = data_of([ResourceMetrics(resource=Resource(), scope_metrics=[scope("", "x")])])

    assert places(merged(data * 2)) == places(data) * 2
