"""The metrics that the host declares, and the rows of the parts that yield them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import odradek
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.delivery.cluster_writer import ClusterWriter
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.gateway.cluster_subscriptions import ClusterSubscriptions
from odradek.gateway.dropping_sink import DroppingSink
from odradek.gateway.pair_failure import Cause
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.path_meter import PathMeter
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.meters.cluster_metrics import cluster_rows
from odradek.meters.connection_metrics import connection_rows
from odradek.meters.destination_metrics import destination_rows
from odradek.meters.gateway_metrics import gateway_rows
from odradek.meters.loop_lag import BOUNDS_S, LOOP_LAG
from odradek.meters.metrics import push_rows, source_rows
from odradek.meters.quota_metrics import quota_rows
from odradek.metrics.bucket_counts import BucketCounts
from odradek.metrics.metric import DECLARED, Metric, MetricRow
from odradek.plugin import TelemetryRecord
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.programs.forward import PARTITIONS
from odradek.programs.gateway_workers.workers import PROCESSES
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.telemetry.client_metrics_stats import ClientMetricsStats
from odradek.telemetry.kept_pushes import KeptPushes, Loss
from odradek.telemetry.narrowed_clients import NARROWED
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.temporality import CumulativeForwarder, Rejection, TotalsSettings
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker
from support.budget_clients import BudgetScene, metric
from support.observed import Stage

SOURCES = Path(odradek.__file__).parent


@cache
def declared() -> Mapping[str, Metric]:
    """All metrics that the host declares, by name."""
    for path in SOURCES.rglob("*.py"):
        if "from odradek.metrics.metric import" in path.read_text(encoding="utf-8"):
            import_module(".".join(path.relative_to(SOURCES.parent).with_suffix("").parts))
    return DECLARED


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
    answers = TelemetryAnswers(Dispatcher(broker, Routes()), broker.telemetry)
    answers.answer(b"\0\x47", PairIdentity("10.0.0.1", 1, "CLIENTS", awaiting_sasl=True), lambda _: None)
    known = ClusterSubscriptions(SubscriptionSource.BOTH, broker.telemetry.subscriptions, clock)
    known.listed({}, {})
    yield from answers.metric_rows()
    yield from known.metric_rows()
    stage = Stage()
    stage.source.accounts.reject(ErrorCode.INVALID_RECORD)
    yield from stage.observation.metric_rows()
    stage.source.requests["stored"] = 1
    yield from source_rows(stage.source, lag=1)


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


def path_metrics() -> Iterator[MetricRow]:
    """The metric rows of a gateway's data path, after some traffic and some faults."""
    meter = PathMeter(closed=Counter({Cause.CLIENT: 1}), requests=Counter({18: 1}))
    meter.rewritten[3] = meter.internal_errors[3] = 1
    gateway: Any = SimpleNamespace(
        path=SimpleNamespace(meter=meter),
        routings={"CLIENTS": SimpleNamespace(refused={"missing": 1})},
        unmapped=0,
        dialer=SimpleNamespace(failures={("1", "refused"): 1}),
        standstills=SimpleNamespace(stuck={"1": 1}),
        slow_peers=0,
        table=SimpleNamespace(addresses={}),
        switch=SimpleNamespace(position=0),
        reachability=SimpleNamespace(is_ready=lambda _now_ms: True),
        memory=SimpleNamespace(what="pairs", total_bytes=0, scarce_bytes=0, paused=(), closed=0),
    )
    yield from gateway_rows(gateway, (), 0)
    yield from LOOP_LAG.rows(BucketCounts(BOUNDS_S))
    sink: Any = None
    yield from DroppingSink(sink).metric_rows()


def process_metrics() -> Iterator[MetricRow]:
    """The metric rows of a gateway's workers, and of ``odradek forward``."""
    workers: Any = SimpleNamespace(serving=[SimpleNamespace(addresses=[], number=0, starts=1)], former=[])
    yield from PROCESSES.rows(workers)
    source, cursor = SimpleNamespace(ends=dict), SimpleNamespace(expected={0: 0})
    runner: Any = SimpleNamespace(
        lock=nullcontext(), feed=SimpleNamespace(source=source, cursor=cursor), unsettled=list
    )
    feed: Any = SimpleNamespace(owned={0})
    yield from PARTITIONS.rows(runner, feed, plugin="otlp")


def raised(error: Exception) -> None:
    raise error


def rows_of_parts() -> Iterator[MetricRow]:
    """The metric rows of all parts whose rows come with use, or that a host does not have."""
    stats = ClientMetricsStats()
    stats.register(bytes(16))
    yield from stats.rows(1, now_ms=0)
    yield NARROWED.row(1, client_instance_id="AAAAAAAAAAAAAAAAAAAAAA", metrics="nothing")
    forwarder = ForwarderStats(
        offered=3, delivered=1, dropped={"start": 1}, rejected={"no": 1}, retries=0, failures=0, queued=0,
        in_flight=0, queued_bytes=0, last_error=None, failing={"ConnectionRefusedError": 1.0},
    )  # fmt: skip
    for each in (RefusingDestination(), totals_with_a_rejected_point(), totals_over_budget()):
        yield from destination_rows("otlp", each, forwarder, raised)
    accounts = PushAccounts(rejected={ErrorCode.INVALID_REQUEST: 1})
    kept = KeptPushes(TelemetryConfig())
    kept.lose(ErrorCode.TELEMETRY_TOO_LARGE, Loss.OFF)
    accounts.keep(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    yield from push_rows(accounts, kept, {"KAFKA_STORAGE_ERROR": 1})
    yield from quota_metrics()
    yield from connection_metrics()
    yield from gateway_telemetry_metrics()
    yield from cluster_rows(cluster_writer())
    yield from path_metrics()
    yield from process_metrics()
