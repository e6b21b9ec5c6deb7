"""The report as a whole."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from odradek.testing.conformance import RULES, Observation, Pushed, conformance_report, from_record
from odradek.testing.conformance.standard_metrics import STANDARD_METRICS
from odradek.testing.pushes import recorded
from odradek.topic.telemetry_topic import decode_record, encode_headers, record_key
from support.conversations import Conversation

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
TOTAL = "org.apache.kafka.producer.connection.creation.total"
LATENCY = "org.apache.kafka.producer.node.request.latency.avg"


def sum_of(name: str, *, delta: bool = True, monotonic: bool = True, unit: str = "") -> MetricsData:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name=name, unit=unit)
    metric.sum.is_monotonic = monotonic
    if delta:
        metric.sum.aggregation_temporality = DELTA
    metric.sum.data_points.add(as_int=1)
    return data


def pushed(data: MetricsData, prefixes: tuple[str, ...] = ("*",)) -> Conversation:
    return Conversation(prefixes=prefixes).handshake(0).push(1, data=data.SerializeToString())


def test_a_metric_is_shown_as_it_was_sent() -> None:
    (row,) = (row for row in pushed(sum_of(TOTAL)).report().metrics if row.name == TOTAL)

    assert (row.state, row.kind, row.temporality, row.labels) == ("sent", "sum", "delta", [])


def test_a_wrong_metric_is_shown_with_the_reason() -> None:
    data = sum_of(TOTAL, delta=False, monotonic=False, unit="s")

    assert pushed(data).report().wrong == [
        f"{TOTAL}: a sum that is not monotonic; cumulative, although the host requested delta; "
        "unit s, should be none"
    ]
    assert pushed(sum_of(LATENCY)).report().wrong == [
        f"{LATENCY}: a sum, should be a gauge; no label node_id"
    ]


def test_a_requested_metric_that_did_not_come_is_missing() -> None:
    assert LATENCY in pushed(sum_of(TOTAL)).report().missing
    assert pushed(sum_of(TOTAL), (TOTAL,)).report().missing == []


def test_only_metrics_of_the_kind_of_client_are_expected() -> None:
    report = pushed(sum_of(TOTAL)).report()

    assert report.roles == ["producer"]
    assert {row.name.split(".")[3] for row in report.metrics} == {"producer"}


def test_accepted_pushes_alone_leave_rules_unseen() -> None:
    report = Conversation().push(1).push(2).report(complete=False)

    told = {row.rule for row in report.rules if row.seen != "the topic contains only accepted pushes"}
    assert told == {rule.name for rule in RULES if rule.in_topic}
    assert str(report).splitlines()[2] == "seen in the topic: 2 pushes, 10 metrics"


def test_the_interval_is_taken_from_the_records_of_the_topic() -> None:
    pushes = [push for push in recorded("java-producer") if not push.payload.terminating]
    records = [push.record for push in pushes]

    exchanges = [
        from_record(
            decode_record(
                record_key(each.payload.client_instance_id), each.payload.data, encode_headers(each)
            )
        )
        for each in records
    ]
    report = conformance_report("java-producer", Observation(exchanges=exchanges, complete=False))

    assert all(isinstance(each, Pushed) and each.push_interval_ms == 2_000 for each in exchanges)
    (row,) = (row for row in report.rules if row.rule == "interval")
    assert row.verdict == "ok"


def test_the_report_can_be_json() -> None:
    report = pushed(sum_of(TOTAL)).report()

    told = json.loads(json.dumps(report.as_json()))

    assert (told["client_id"], told["wrong"], told["missing"]) == ("me", report.wrong, report.missing)


def test_a_report_without_a_client_is_refused() -> None:
    with pytest.raises(ValueError, match="client me has neither requested a subscription nor pushed"):
        Conversation().report()


def test_a_standard_metric_is_listed_once() -> None:
    assert len({metric.name for metric in STANDARD_METRICS}) == len(STANDARD_METRICS)
