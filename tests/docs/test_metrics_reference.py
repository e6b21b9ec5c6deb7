"""``reference/metrics.md`` has every instrument with its kind, unit and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import load_handlers
from odradek.delivery.cluster_writer import ClusterWriter
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.gateway.cluster_subscriptions import ClusterSubscriptions
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.meters.cardinality_metrics import cardinality_rows
from odradek.meters.cluster_metrics import cluster_rows
from odradek.meters.connection_metrics import connection_rows
from odradek.meters.forwarder_points import point_rows
from odradek.meters.metrics import INSTRUMENTS, forwarder_rows, push_rows, source_rows
from odradek.meters.quota_metrics import QUOTA_INSTRUMENTS, quota_rows
from odradek.meters.temporality_metrics import temporality_rows
from odradek.plugin import TelemetryRecord
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.telemetry.client_metrics_stats import ClientMetricsStats, MetricRow
from odradek.telemetry.kept_pushes import KeptPushes, Loss
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.temporality import CumulativeForwarder, Rejection, TotalsSettings
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker
from support.budget_clients import BudgetScene, metric
from support.observed import Stage
from support.reference_page import page, rows

ROWS = rows(page("reference/metrics.md"))
WRITTEN = {name: row for name, row in ROWS.items() if "." in name}
WITHOUT_ROWS = {"odradek.up"}
"""Added by the endpoint itself."""


def labels(name: str) -> set[str]:
    return {label for label in WRITTEN[name][3].split(", ") if label}


def quota_metrics() -> Iterator[MetricRow]:
    """The metric rows of quotas that were used."""
    clock = MockClock()
    quotas, now_ms = QuotaManagers(QuotaConfigs(), clock), clock.monotonic_ms()
    for key in quotas.by_key:
        quotas.apply(ClientQuotaEntity(user="u", client_id="c"), {key: 1.0})
    for manager in quotas.clients:
        manager.record_and_throttle_ms("u", "c", 1, now_ms)
    for replication in quotas.replications:
        replication.record(1, now_ms)
    quotas.request.record_exempt_ns(1, now_ms)
    yield from quota_rows(quotas, now_ms)


def connection_metrics() -> Iterator[MetricRow]:
    """The metric rows of connection limits, with an address that has one."""
    clock = MockClock()
    quotas = ConnectionQuotas(clock, clock.timer)
    quotas.add_listener("PLAINTEXT")
    quotas.update_ip_rate(None, 5)
    quotas.enter(quotas.arrive("PLAINTEXT", "10.0.0.1"))
    yield from connection_rows(quotas, clock.monotonic_ms())


def gateway_telemetry_metrics() -> Iterator[MetricRow]:
    """The metric rows of a gateway's telemetry, after a poll and a request before authentication."""
    broker, clock = make_broker(), MockClock()
    answers = TelemetryAnswers(Dispatcher(broker, load_handlers()), broker.telemetry)
    answers.answer(b"\0\x47", PairIdentity("10.0.0.1", 1, "CLIENTS", awaiting_sasl=True), lambda _: None)
    known = ClusterSubscriptions(SubscriptionSource.BOTH, broker.telemetry.subscriptions, clock)
    known.listed({}, {})
    yield from answers.metric_rows()
    yield from known.metric_rows()
    stage = Stage()
    stage.source.accounts.reject(ErrorCode.INVALID_RECORD)
    yield from stage.observation.metric_rows()
    yield from source_rows(stage.source)


class RefusingDestination:
    """A forwarder whose destination has refused a data point of a push that it accepted."""

    refused_points: Mapping[str, int] = MappingProxyType({"out_of_order": 1})
    renamed_points = 1

    async def start(self) -> None:
        """Nothing to open."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Nothing to keep."""

    async def close(self) -> None:
        """Nothing to close."""


def totals_with_a_rejected_point() -> CumulativeForwarder:
    """A forwarder whose totals lack a data point."""
    destination: Any = None
    forwarder = CumulativeForwarder(destination, TotalsSettings(file=Path("unused")))
    forwarder.figures.counts.rejected_points[Rejection.NEGATIVE] += 1
    return forwarder


def totals_over_budget() -> CumulativeForwarder:
    """A forwarder with a folded and a refused stream."""
    destination: Any = None
    forwarder = CumulativeForwarder(destination, TotalsSettings(file=Path("unused")))
    scene = BudgetScene(series=1)
    scene.push(1, metric("c", 1, 60), metric("d", 1, 60))
    scene.folding.policy.counts.refused["all"] = 1
    forwarder.figures.foldings = (scene.folding,)
    return forwarder


def cluster_writer() -> ClusterWriter:
    """A writer to a cluster that has refused a push."""
    clock = MockClock()
    return ClusterWriter(
        clock=clock,
        timer=clock.timer,
        write=lambda _number, _record: None,
        max_bytes=1,
        max_records=1,
        timeout_ms=1,
        refused={"stopped": 1},
    )


def test_every_instrument_has_its_kind_and_unit() -> None:
    wanted = {instrument.name: [instrument.kind, instrument.unit] for instrument in INSTRUMENTS.values()}

    assert {name: row[1:3] for name, row in WRITTEN.items() if name not in WITHOUT_ROWS} == wanted


def test_labels_are_those_of_the_rows() -> None:
    stats = ClientMetricsStats()
    stats.register(bytes(16))
    forwarder = ForwarderStats(
        offered=3, delivered=1, dropped={"start": 1}, rejected={"no": 1}, retries=0, failures=0, queued=0,
        in_flight=0, queued_bytes=0, last_error=None,
    )  # fmt: skip

    quotas = [*quota_metrics(), *connection_metrics()]
    accounts = PushAccounts(rejected={ErrorCode.INVALID_REQUEST: 1})
    kept = KeptPushes(TelemetryConfig())
    kept.lose(ErrorCode.TELEMETRY_TOO_LARGE, Loss.OFF)
    accounts.keep(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    pushes = push_rows(accounts, kept, {"KAFKA_STORAGE_ERROR": 1})
    found = [
        *stats.rows(1, now_ms=0),
        *forwarder_rows("otlp", forwarder),
        *pushes,
        *quotas,
        *gateway_telemetry_metrics(),
        *cluster_rows(cluster_writer()),
        *temporality_rows("otlp", totals_with_a_rejected_point()),
        *cardinality_rows("prometheus", totals_over_budget()),
        *point_rows("otlp", RefusingDestination()),
    ]

    assert len(found) > 25
    assert {INSTRUMENTS[row.name].name: set(row.attributes) for row in found} == {
        INSTRUMENTS[row.name].name: labels(INSTRUMENTS[row.name].name) for row in found
    }


def test_every_metric_of_the_quotas_has_an_instrument() -> None:
    assert {row.name for row in quota_metrics()} == set(QUOTA_INSTRUMENTS)
