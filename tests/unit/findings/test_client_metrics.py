"""The reference of client metrics agrees with recorded pushes of real clients; tables name what it has."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import NamedTuple

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.findings import incidents
from odradek.findings.client_metrics import MADE_BY, PREFIX, SEEN_BY, ClientMetric, client_metrics
from odradek.findings.concerns import CONCERNS
from odradek.findings.troubles import JAVA, LIBRDKAFKA, TROUBLES
from odradek.testing.pushes import recorded, recorded_clients
from odradek_tables.levels import CLIENT_METRICS

SOFTWARE = {"java": JAVA, "librdkafka": LIBRDKAFKA, "franz": "franz-go"}
APPLICATION = PREFIX + "stream."
"""The recorded application registers three metrics that are called as those of Kafka Streams."""
REFERENCE = client_metrics()
SENT = [each for each in REFERENCE.values() if each.software.isdisjoint({MADE_BY, SEEN_BY})]


class Seen(NamedTuple):
    """One metric in the recordings."""

    kinds: set[str]
    levels: set[frozenset[str]]
    software: set[str]


@cache
def seen() -> dict[str, Seen]:
    found: dict[str, Seen] = defaultdict(lambda: Seen(set(), set(), set()))
    for client in recorded_clients():
        for push in recorded(client):
            for entry in MetricsData.FromString(push.data).resource_metrics:
                for metric in (metric for scope in entry.scope_metrics for metric in scope.metrics):
                    kind = metric.WhichOneof("data")
                    assert kind is not None
                    row = found[metric.name]
                    row.kinds.add(kind)
                    row.software.add(SOFTWARE[client.partition("-")[0]])
                    row.levels.update(
                        frozenset(label.key.replace(".", "_") for label in point.attributes)
                        for point in getattr(metric, kind).data_points
                    )
    return {name: row for name, row in found.items() if not name.startswith(APPLICATION)}


def named(metric: ClientMetric) -> str:
    return metric.name.removeprefix(PREFIX)


def test_the_metrics_are_recorded_as_the_reference_says() -> None:
    assert seen() == {
        metric.name: Seen({metric.kind}, set(metric.levels), set(metric.software)) for metric in SENT
    }


def test_a_metric_has_a_unit_an_aggregate_and_help() -> None:
    by_end = {"max": "max", "ago": "max", "min": "min", "avg": "mean", "ratio": "mean"}

    for metric in REFERENCE.values():
        assert re.fullmatch(r"1|ms|ns|s|By|By/s|1/s|1/h|\{[a-z]+\}", metric.unit), metric
        assert metric.aggregate == by_end.get(metric.name.rpartition(".")[2], metric.aggregate), metric
        assert metric.kind == "gauge" or metric.aggregate == "sum", metric
        assert re.fullmatch(r"[A-Z0-9].+[a-z0-9)]\.", metric.help), metric


def test_nine_consumer_metrics_have_two_levels() -> None:
    assert {named(metric) for metric in SENT if len(metric.levels) > 1} == {
        "consumer.fetch.manager." + name
        for name in (
            "bytes.consumed.rate",
            "bytes.consumed.total",
            "fetch.size.avg",
            "fetch.size.max",
            "records.consumed.rate",
            "records.consumed.total",
            "records.lag.max",
            "records.lead.min",
            "records.per.request.avg",
        )
    }


def test_incidents_are_in_the_reference() -> None:
    told = {each for each in vars(incidents).values() if str(each).startswith(incidents.OBSERVED)}

    assert told - {incidents.OBSERVED} == {
        each.name for each in REFERENCE.values() if SEEN_BY in each.software
    }


def test_the_standard_set_is_that_of_the_kip() -> None:
    standard = {named(metric) for metric in SENT if metric.standard}

    assert len(standard) == 8 + 13
    assert all(LIBRDKAFKA in client_metrics()[PREFIX + name].software for name in standard)


def test_troubles_name_metrics_of_the_software_that_they_claim() -> None:
    claimed = [
        (trouble.id, software, REFERENCE[name], trouble.labels)
        for trouble in TROUBLES
        for software, name in trouble.metrics.items()
        if name.startswith(PREFIX)
    ]

    assert len(claimed) > len(TROUBLES) // 2
    assert [
        (name, software)
        for name, software, metric, labels in claimed
        if software not in metric.software or frozenset(labels) not in {frozenset[str](), *metric.levels}
    ] == []


def test_the_tables_of_the_pipeline_name_metrics_that_exist() -> None:
    assert {name for each in CONCERNS for chart in each.charts for name in chart.names} <= REFERENCE.keys()
    assert all(any(name.startswith(prefix) for name in REFERENCE) for prefix in CLIENT_METRICS)
