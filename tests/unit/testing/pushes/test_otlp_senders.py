"""Recorded pushes of senders of OTLP, and the table of all recordings."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from odradek.testing.pushes import RecordedPush, otlp_senders, recorded, recorded_clients, recorded_otlp
from support.reference_page import page, rows

SENDERS = {
    "opentelemetry-go": ("otelcol-odradek", ("unknown", "unknown")),
    "opentelemetry-python": ("checkout", ("opentelemetry", "1.45.2")),
    "opentelemetry-python-delta": ("checkout", ("opentelemetry", "1.45.2")),
}


def test_each_sender_has_a_recording() -> None:
    assert otlp_senders() == sorted(SENDERS)
    assert {push.client for push in recorded_otlp()} == set(SENDERS)


@pytest.mark.parametrize("sender", SENDERS)
def test_a_request_is_a_record_as_the_source_makes_it(sender: str) -> None:
    pushes = recorded_otlp(sender)

    assert len(pushes) == 4
    for push in pushes:
        assert (push.context.client_id, push.software) == SENDERS[sender]
        assert MetricsData.FromString(push.data).resource_metrics
        assert (push.record.source, push.record.labeled, push.record.push_interval_ms) == (
            "otlp",
            False,
            60_000,
        )
    assert len({push.payload.client_instance_id for push in pushes}) == 1


@pytest.mark.parametrize(("sender", "temporality"), [("", 2), ("-delta", 1)])
def test_the_sdk_for_python_sends_totals_and_deltas(sender: str, temporality: int) -> None:
    found = {
        metric.sum.aggregation_temporality
        for push in recorded_otlp(f"opentelemetry-python{sender}")
        for entry in MetricsData.FromString(push.data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
        if metric.name == "orders"
    }

    assert found == {AggregationTemporality.ValueType(temporality)}


def test_a_sender_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(ValueError, match="no recording of 'vector': expected one of opentelemetry-go, "):
        recorded_otlp("vector")


def test_the_page_lists_all_recordings_with_versions_and_sizes() -> None:
    def row(pushes: list[RecordedPush]) -> list[str]:
        sent, opened = [len(push.sent) for push in pushes], [len(push.data) for push in pushes]
        sizes = [f"{min(each)} to {max(each)}" for each in (sent, opened)]
        return [" ".join(pushes[0].software), str(len(pushes)), *sizes]

    written = rows(page("reference/testing.md").partition("### Recordings")[2])
    recordings = {name: row(recorded(name)) for name in recorded_clients()}
    recordings |= {name: row(recorded_otlp(name)) for name in otlp_senders()}

    assert {name: written[name][1:] for name in recordings} == recordings
