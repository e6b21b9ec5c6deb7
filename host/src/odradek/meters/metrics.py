"""The host's own metrics: their instruments, and their current values as rows.

Rooms count in plain integers. The functions below read the counts when a reader collects;
`Host.metric_rows` joins all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.meters.authentication_metrics import AUTHENTICATION_INSTRUMENTS, authentication_rows
from odradek.meters.cardinality_metrics import CARDINALITY_INSTRUMENTS
from odradek.meters.certificate_metrics import CERTIFICATE_INSTRUMENTS
from odradek.meters.cluster_metrics import CLUSTER_INSTRUMENTS
from odradek.meters.connection_metrics import CONNECTION_INSTRUMENTS
from odradek.meters.forward_metrics import FORWARD_INSTRUMENTS
from odradek.meters.forwarder_points import POINT_INSTRUMENTS
from odradek.meters.gateway_path_metrics import GATEWAY_PATH_INSTRUMENTS
from odradek.meters.gateway_telemetry_metrics import GATEWAY_TELEMETRY_INSTRUMENTS
from odradek.meters.gateway_worker_metrics import GATEWAY_WORKER_INSTRUMENTS
from odradek.meters.instrument import Instrument
from odradek.meters.loop_lag import LOOP_LAG_INSTRUMENTS
from odradek.meters.memory_metrics import MEMORY_INSTRUMENTS
from odradek.meters.quota_metrics import QUOTA_INSTRUMENTS
from odradek.meters.state_metrics import STATE_INSTRUMENTS
from odradek.meters.temporality_metrics import TEMPORALITY_INSTRUMENTS
from odradek.net.listener import Listener
from odradek.net.turns import Turns
from odradek.plugin.plugin_stats import PluginStats
from odradek.process.payload_workers import PayloadWorkers
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.telemetry.kept_pushes import KeptPushes
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.record_source import RecordSource

KAFKA = "kafka.server.client.metrics"
"""Kafka's group ``client-metrics`` of the domain ``kafka.server``, as a prefix."""

INSTRUMENTS = {
    "instance-count": Instrument(
        f"{KAFKA}.instance.count", "gauge", "{instance}", "Client instances in the cache"
    ),
    "unknown-subscription-request-count": Instrument(
        f"{KAFKA}.unknown.subscription.request.count",
        "counter",
        "{push}",
        "Pushes with a stale subscription id",
    ),
    "unknown-subscription-request-rate": Instrument(
        f"{KAFKA}.unknown.subscription.request.rate",
        "gauge",
        "{push}/s",
        "Pushes with a stale subscription id",
    ),
    "throttle-count": Instrument(
        f"{KAFKA}.throttle.count", "counter", "{request}", "Requests that came too early"
    ),
    "throttle-rate": Instrument(
        f"{KAFKA}.throttle.rate", "gauge", "{request}/s", "Requests that came too early"
    ),
    "plugin-export-count": Instrument(
        f"{KAFKA}.plugin.export.count", "counter", "{push}", "Pushes given to plugins"
    ),
    "plugin-export-rate": Instrument(
        f"{KAFKA}.plugin.export.rate", "gauge", "{push}/s", "Pushes given to plugins"
    ),
    "plugin-export-time-avg": Instrument(
        f"{KAFKA}.plugin.export.time.avg", "gauge", "ms", "Time that plugins took for a push, mean"
    ),
    "plugin-export-time-max": Instrument(
        f"{KAFKA}.plugin.export.time.max", "gauge", "ms", "Time that plugins took for a push, maximum"
    ),
    "plugin-error-count": Instrument(
        f"{KAFKA}.plugin.error.count", "counter", "{push}", "Pushes that could not be opened or exported"
    ),
    "plugin-error-rate": Instrument(
        f"{KAFKA}.plugin.error.rate", "gauge", "{push}/s", "Pushes that could not be opened or exported"
    ),
    "connections": Instrument("odradek.connections", "gauge", "{connection}", "Open connections"),
    "connections-accepted": Instrument(
        "odradek.connections.accepted", "counter", "{connection}", "Connections since the start"
    ),
    "connections-refused": Instrument(
        "odradek.connections.refused",
        "counter",
        "{connection}",
        "Connections closed because of malformed requests or PROXY headers",
    ),
    "connections-waiting": Instrument(
        "odradek.connections.waiting", "gauge", "{connection}", "Connections whose requests wait for a turn"
    ),
    "connections-departing": Instrument(
        "odradek.connections.departing",
        "gauge",
        "{connection}",
        "Connections whose clients have left, to be ended",
    ),
    "requests-delayed": Instrument(
        "odradek.requests.delayed",
        "counter",
        "{request}",
        "Requests that waited their turn on a busy loop",
    ),
    "turns-used-up": Instrument(
        "odradek.turns.used.up", "counter", "{turn}", "Turns that ended with requests left"
    ),
    "offline-log-directory-count": Instrument(
        "kafka.log.log.manager.offline.log.directory.count",
        "gauge",
        "{directory}",
        "Log directories that are offline because their disk failed",
    ),
    "authorization-denied": Instrument(
        "odradek.authorization.denied", "counter", "{check}", "Rights that clients lacked"
    ),
    "unexpected-errors": Instrument(
        "odradek.unexpected.errors", "counter", "{error}", "Errors that are bugs of the host"
    ),
    "long-requests": Instrument(
        "odradek.requests.long", "counter", "{request}", "Requests that took more than one turn of the loop"
    ),
    "long-requests-waiting": Instrument(
        "odradek.requests.long.waiting", "gauge", "{request}", "Such requests that are not answered yet"
    ),
    "large-responses-refused": Instrument(
        "odradek.responses.refused", "counter", "{response}", "Responses that would have been too large"
    ),
    "worker-requests": Instrument(
        "odradek.worker.requests", "counter", "{request}", "Requests whose content a worker process opened"
    ),
    "worker-refused": Instrument(
        "odradek.worker.refused", "counter", "{request}", "Requests without room in the queue of a worker"
    ),
    "worker-queued": Instrument(
        "odradek.worker.queued", "gauge", "{request}", "Requests that wait for a worker process"
    ),
    "worker-queued-bytes": Instrument(
        "odradek.worker.queued.size", "gauge", "By", "Bytes that wait for a worker process"
    ),
    "plugin-pushes": Instrument(
        "odradek.plugin.pushes", "counter", "{push}", "Pushes passed to a plugin, or clients it labeled"
    ),
    "plugin-failures": Instrument(
        "odradek.plugin.failures", "counter", "{push}", "Pushes for which a plugin raised an exception"
    ),
    "plugin-slow": Instrument(
        "odradek.plugin.slow", "counter", "{push}", "Pushes for which a plugin blocked the loop"
    ),
    "plugin-dropped": Instrument(
        "odradek.plugin.dropped", "counter", "{push}", "Pushes without room in the queue of a plugin's thread"
    ),
    "plugin-queued": Instrument(
        "odradek.plugin.queued", "gauge", "{push}", "Pushes that wait for a plugin's thread"
    ),
    "push-received": Instrument("odradek.push.received", "counter", "{push}", "PushTelemetry requests"),
    "push-appended": Instrument("odradek.push.appended", "counter", "{push}", "Accepted pushes with metrics"),
    "push-empty": Instrument("odradek.push.empty", "counter", "{push}", "Accepted pushes without metrics"),
    "push-rejected": Instrument(
        "odradek.push.rejected", "counter", "{push}", "Refused pushes that were not stored, by error code"
    ),
    "push-narrowed": Instrument(
        "odradek.push.narrowed",
        "gauge",
        "{instance}",
        "Clients that are asked for fewer metrics because their pushes were too large: 1 for each",
    ),
    "push-kept": Instrument(
        "odradek.push.kept", "counter", "{push}", "Pushes that were refused and stored, by error code"
    ),
    "push-repeated": Instrument(
        "odradek.push.repeated", "counter", "{push}", "Accepted pushes that were stored before, when refused"
    ),
    "push-lost": Instrument(
        "odradek.push.lost", "counter", "{push}", "Refused pushes whose metrics no push will bring again"
    ),
    "push-waiting": Instrument(
        "odradek.push.waiting", "gauge", "{push}", "Pushes being decompressed or written"
    ),
    "source-received": Instrument(
        "odradek.source.received",
        "counter",
        "{record}",
        "Records that no client pushed to this host: observed ones, and those that plugins brought in",
    ),
    "source-appended": Instrument(
        "odradek.source.appended", "counter", "{record}", "Records of a source that were stored"
    ),
    "source-empty": Instrument(
        "odradek.source.empty", "counter", "{record}", "Records of a source without metrics, stored"
    ),
    "source-repeated": Instrument(
        "odradek.source.repeated",
        "counter",
        "{record}",
        "Records of a source that were already stored, and not stored again",
    ),
    "source-lag": Instrument(
        "odradek.source.lag", "gauge", "{record}", "Records that wait where a source reads them"
    ),
    "source-waiting": Instrument(
        "odradek.source.waiting", "gauge", "{record}", "Records of a source being written"
    ),
    "source-rejected": Instrument(
        "odradek.source.rejected", "counter", "{record}", "Records of a source not stored, by error code"
    ),
    "source-requests": Instrument(
        "odradek.source.requests", "counter", "{request}", "Requests of a source's senders, by outcome"
    ),
    "spool-refused": Instrument(
        "odradek.spool.refused", "counter", "{push}", "Valid pushes that could not be stored"
    ),
    "forwarder-offered": Instrument(
        "odradek.forwarder.offered", "counter", "{push}", "Pushes offered to a forwarder"
    ),
    "forwarder-delivered": Instrument(
        "odradek.forwarder.delivered", "counter", "{push}", "Pushes that the destination accepted"
    ),
    "forwarder-dropped": Instrument(
        "odradek.forwarder.dropped", "counter", "{push}", "Pushes that the host gave up"
    ),
    "forwarder-rejected": Instrument(
        "odradek.forwarder.rejected", "counter", "{push}", "Pushes that the destination permanently refused"
    ),
    "forwarder-queued": Instrument(
        "odradek.forwarder.queued", "gauge", "{push}", "Pushes that are waiting or being delivered"
    ),
    **FORWARD_INSTRUMENTS,
    **AUTHENTICATION_INSTRUMENTS,
    **CERTIFICATE_INSTRUMENTS,
    **LOOP_LAG_INSTRUMENTS,
    **MEMORY_INSTRUMENTS,
    **QUOTA_INSTRUMENTS,
    **CONNECTION_INSTRUMENTS,
    **STATE_INSTRUMENTS,
    **POINT_INSTRUMENTS,
    **TEMPORALITY_INSTRUMENTS,
    **CARDINALITY_INSTRUMENTS,
    **CLUSTER_INSTRUMENTS,
    **GATEWAY_PATH_INSTRUMENTS,
    **GATEWAY_TELEMETRY_INSTRUMENTS,
    **GATEWAY_WORKER_INSTRUMENTS,
}
"""By row name."""


def listener_rows(listeners: Sequence[Listener]) -> Iterator[MetricRow]:
    """The connections of each listener, and of all together."""
    for listener in listeners:
        labels = {"listener": listener.address.name}
        yield MetricRow("connections", "gauge", labels, len(listener.channels))
        yield MetricRow("connections-accepted", "counter", labels, listener.accepted)
        yield MetricRow("connections-refused", "counter", labels, listener.refused)
    yield from authentication_rows(listeners)
    if listeners:
        yield from turn_rows(listeners[0].turns)


def request_rows(dispatcher: Dispatcher, broker: Broker) -> Iterator[MetricRow]:
    """The requests that hit a bug, those whose work runs in steps, and those that ask for too much."""
    yield MetricRow("unexpected-errors", "counter", {}, dispatcher.unexpected_errors)
    yield MetricRow("long-requests", "counter", {}, broker.steps.deferred)
    yield MetricRow("long-requests-waiting", "gauge", {}, len(broker.steps.tasks))
    yield MetricRow("large-responses-refused", "counter", {}, broker.large_responses_refused)


def turn_rows(turns: Turns) -> Iterator[MetricRow]:
    """The connections with several requests waiting, and those that are to be ended."""
    yield MetricRow("connections-waiting", "gauge", {}, len(turns))
    yield MetricRow("connections-departing", "gauge", {}, len(turns.departures))
    yield MetricRow("turns-used-up", "counter", {}, turns.used_up)
    yield MetricRow("requests-delayed", "counter", {}, turns.delayed)


def worker_rows(workers: Mapping[str, PayloadWorkers | None]) -> Iterator[MetricRow]:
    """The queues of the worker processes, by what they open; none without processes."""
    for name, each in workers.items():
        if each is not None:
            labels = {"worker": name}
            yield MetricRow("worker-requests", "counter", labels, each.taken)
            yield MetricRow("worker-refused", "counter", labels, each.refused)
            yield MetricRow("worker-queued", "gauge", labels, len(each.queue))
            yield MetricRow("worker-queued-bytes", "gauge", labels, each.queued_bytes)


def plugin_rows(plugins: Iterable[PluginStats], queued: Mapping[str, int]) -> Iterator[MetricRow]:
    """The calls of each plugin on the loop and on its thread, and what waits for that thread."""
    by_name: dict[str, list[PluginStats]] = {}
    for stats in plugins:
        by_name.setdefault(stats.name, []).append(stats)
    for name, all_stats in by_name.items():
        labels = {"plugin": name}
        yield MetricRow("plugin-pushes", "counter", labels, sum(stats.exported for stats in all_stats))
        yield MetricRow("plugin-failures", "counter", labels, sum(stats.failed for stats in all_stats))
        yield MetricRow("plugin-slow", "counter", labels, sum(stats.slow for stats in all_stats))
        yield MetricRow("plugin-dropped", "counter", labels, sum(stats.dropped for stats in all_stats))
        yield MetricRow("plugin-queued", "gauge", labels, queued.get(name, 0))


def push_rows(accounts: PushAccounts, kept: KeptPushes, refused: Mapping[str, int]) -> list[MetricRow]:
    """The accounts of all pushes at one moment.

    received = appended + empty + repeated + rejected + kept + waiting. The lost pushes are rejected ones.
    """
    return [
        MetricRow("push-received", "counter", {}, accounts.received),
        MetricRow("push-appended", "counter", {}, accounts.appended),
        MetricRow("push-empty", "counter", {}, accounts.empty),
        MetricRow("push-repeated", "counter", {}, accounts.repeated),
        MetricRow("push-waiting", "gauge", {}, accounts.waiting),
        *(
            MetricRow("push-rejected", "counter", {"error": code.name}, pushes)
            for code, pushes in accounts.rejected.items()
        ),
        *(
            MetricRow("push-kept", "counter", {"error": code.name}, pushes)
            for code, pushes in accounts.kept.items()
        ),
        *(
            MetricRow("push-lost", "counter", {"error": code.name, "reason": loss}, pushes)
            for (code, loss), pushes in kept.lost.items()
        ),
        *(
            MetricRow("spool-refused", "counter", {"reason": reason}, pushes)
            for reason, pushes in refused.items()
        ),
    ]


def source_rows(source: RecordSource, lag: int | None = None) -> Iterator[MetricRow]:
    """The account of a source: received = appended + empty + repeated + rejected + waiting. And its lag."""
    labels, accounts = {"source": source.name}, source.accounts
    yield MetricRow("source-received", "counter", labels, accounts.received)
    yield MetricRow("source-appended", "counter", labels, accounts.appended)
    yield MetricRow("source-empty", "counter", labels, accounts.empty)
    yield MetricRow("source-repeated", "counter", labels, accounts.repeated)
    yield MetricRow("source-waiting", "gauge", labels, accounts.waiting)
    if lag is not None:
        yield MetricRow("source-lag", "gauge", labels, lag)
    for code, records in accounts.rejected.items():
        yield MetricRow("source-rejected", "counter", labels | {"error": code.name}, records)
    for outcome, requests in source.requests.copy().items():
        yield MetricRow("source-requests", "counter", labels | {"outcome": outcome}, requests)


def forwarder_rows(name: str, stats: ForwarderStats) -> Iterator[MetricRow]:
    """The accounts of one forwarder: offered = delivered + dropped + rejected + queued."""
    labels = {"plugin": name}
    yield MetricRow("forwarder-offered", "counter", labels, stats.offered)
    yield MetricRow("forwarder-delivered", "counter", labels, stats.delivered)
    for reason, records in stats.dropped.items():
        yield MetricRow("forwarder-dropped", "counter", labels | {"reason": reason}, records)
    for reason, records in stats.rejected.items():
        yield MetricRow("forwarder-rejected", "counter", labels | {"reason": reason}, records)
    yield MetricRow("forwarder-queued", "gauge", labels, stats.queued + stats.in_flight)
