"""Estimates of subscriptions are the series that Prometheus gets of the same pushes, within a tenth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from odradek.estimate.budgets import SubscriptionBudgets
from odradek.estimate.estimate import Estimate, estimate
from odradek.estimate.futures import Basis, live_clients
from odradek.estimate.recorded_clients import RecordedClients
from odradek.findings.presets import PRESETS
from odradek.plugin import TelemetryRecord
from odradek.telemetry.client_metrics_configs import parse
from odradek.telemetry.subscriptions import SubscriptionPlans
from odradek.testing.pushes import recorded
from odradek.waiting.steps import result_of
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.produce import ProduceRequest, ProduceResponse
from odradek_otlp.metrics_bytes import filtered
from odradek_prometheus.text_format import Format, Page
from support.exposed_clients import Exposed
from support.observed import INTERVAL_MS, Pair, Stage

CLIENTS = ("java-producer", "java-consumer", "java-admin", "librdkafka-producer", "librdkafka-consumer")
WINDOWS = 3
Pushes = Callable[[str], list[TelemetryRecord]]


def plans(preset: str) -> SubscriptionPlans:
    properties = {**PRESETS[preset].properties, "interval.ms": str(INTERVAL_MS)}
    return SubscriptionPlans({"all": parse("all", properties)})


def in_prometheus(records: Iterable[TelemetryRecord]) -> int:
    """The samples about clients on the page, after these pushes."""
    exposed = Exposed()
    for record in records:
        exposed.deliver(record)
    clients = exposed.exposition.clients()
    now_ms = max(client.received_ms for client in clients)
    text = b"".join(Page(clients, now_ms, Format()).pieces()).decode()
    return sum("client_instance_id=" in line for line in text.splitlines())


def estimated(records: Sequence[TelemetryRecord], before: str, after: str) -> Estimate:
    clients = RecordedClients()
    for record in records:
        clients.add(record)
    now_ms = max(record.context.received_ms for record in records)
    budgets = SubscriptionBudgets()
    live = live_clients(clients, (), now_ms)
    return result_of(estimate(live, clients.reader, plans(before), plans(after), budgets))


def own_pushes(preset: str) -> list[TelemetryRecord]:
    """A few pushes of each recorded client, with the metrics of a preset, at the same time."""
    found = []
    for client in CLIENTS:
        for number, push in enumerate(recorded(client)[1 : 1 + WINDOWS]):
            prefixes = ("",) if preset == "all" else PRESETS[preset].metrics
            data = filtered(push.data, tuple(each.encode() for each in prefixes))
            context = replace(push.context, received_ms=(number + 1) * INTERVAL_MS)
            payload = replace(push.payload, data=data)
            found.append(replace(push.record, context=context, payload=payload, push_interval_ms=INTERVAL_MS))
    return found


def observed(preset: str) -> list[TelemetryRecord]:
    """Windows of a producer and a consumer that a gateway observes, and that use two brokers."""
    stage = Stage(metrics=",".join(PRESETS[preset].metrics))
    producer = [stage.pair("orders", node) for node in (1, 2)]
    consumer = [stage.pair("billing", node) for node in (1, 2)]
    for window in range(WINDOWS):
        for pair in (*producer, *consumer):
            if not window:
                pair.exchange(ApiVersionsRequest(), ApiVersionsResponse(), 3)
            pair.exchange(MetadataRequest(), MetadataResponse(), 7)
        for pair in producer:
            exchange_records(pair)
        for pair in consumer:
            pair.exchange(FetchRequest(), FetchResponse(), 12)
        stage.clock.advance(INTERVAL_MS)
    return stage.records


def exchange_records(pair: Pair) -> None:
    pair.exchange(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), ProduceResponse(responses=[]), 9)


@pytest.mark.parametrize("preset", ["essential", "debug"])
@pytest.mark.parametrize("pushes", [own_pushes, observed])
def test_the_series_of_now_are_those_in_prometheus(pushes: Pushes, preset: str) -> None:
    records = pushes(preset)

    found = estimated(records, preset, preset)

    assert found.live in (2, len(CLIENTS))
    assert found.now.in_prometheus == in_prometheus(records)


@pytest.mark.parametrize(("before", "after"), [("essential", "debug"), ("debug", "essential")])
@pytest.mark.parametrize("pushes", [own_pushes, observed])
def test_the_series_after_a_change_are_those_that_come(pushes: Pushes, before: str, after: str) -> None:
    known, coming = pushes(before), pushes(after)

    found = estimated(known, before, after)

    assert found.bases[Basis.GUESSED].clients <= 2  # a topic of a producer, and the nodes of an admin client
    assert found.after.in_prometheus == pytest.approx(in_prometheus(coming), rel=0.1)
