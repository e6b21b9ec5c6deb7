"""The host's own metrics, for Prometheus.

Rooms count in plain integers. When somebody scrapes, the loop reads them into rows, in small steps, and an
OpenTelemetry SDK meter offers the rows through observable instruments. Nothing here is imported unless
``metrics.listener`` is set.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import prometheus_client
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.resources import Resource

from odradek import __version__
from odradek.broker.broker import Endpoint
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.plugin.config import ConfigError
from odradek.server.connection_metrics import CONNECTION_INSTRUMENTS, connection_rows
from odradek.server.instrument import Instrument
from odradek.server.quota_metrics import QUOTA_INSTRUMENTS, quota_rows
from odradek.server.sasl_listener import SaslListener
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.telemetry.push_accounts import PushAccounts

if TYPE_CHECKING:
    from odradek.server.host import Host

ROWS_PER_STEP = 500
"""Rows that the loop makes before it lets others run: about a millisecond."""
SCRAPE_TIMEOUT_S = 10
MAX_SERIES = 1_000_000
"""Per instrument; the SDK's own limit of 2 000 is less than the instance cache."""


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
        "Connections closed for bytes that made no sense",
    ),
    "successful-authentication": Instrument(
        "kafka.server.socket.server.metrics.successful.authentication",
        "counter",
        "{connection}",
        "Connections whose client proved who it is",
    ),
    "failed-authentication": Instrument(
        "kafka.server.socket.server.metrics.failed.authentication",
        "counter",
        "{connection}",
        "Connections whose client could not",
    ),
    "unexpected-errors": Instrument(
        "odradek.unexpected.errors", "counter", "{error}", "Errors that are bugs of the host"
    ),
    "plugin-pushes": Instrument(
        "odradek.plugin.pushes", "counter", "{push}", "Pushes taken, or labels given"
    ),
    "plugin-failures": Instrument(
        "odradek.plugin.failures", "counter", "{push}", "Pushes on which a plugin raised"
    ),
    "plugin-slow": Instrument(
        "odradek.plugin.slow", "counter", "{push}", "Pushes with which a plugin held up the loop"
    ),
    "push-received": Instrument("odradek.push.received", "counter", "{push}", "PushTelemetry requests"),
    "push-appended": Instrument("odradek.push.appended", "counter", "{push}", "Accepted, with metrics"),
    "push-empty": Instrument("odradek.push.empty", "counter", "{push}", "Accepted, without metrics"),
    "push-rejected": Instrument(
        "odradek.push.rejected", "counter", "{push}", "Not accepted, by what the client was told"
    ),
    "push-waiting": Instrument("odradek.push.waiting", "gauge", "{push}", "Being opened or written"),
    "spool-refused": Instrument(
        "odradek.spool.refused", "counter", "{push}", "Accepted pushes that could not be kept"
    ),
    "forwarder-offered": Instrument(
        "odradek.forwarder.offered", "counter", "{push}", "Pushes offered to a forwarder"
    ),
    "forwarder-delivered": Instrument(
        "odradek.forwarder.delivered", "counter", "{push}", "Pushes the far side took"
    ),
    "forwarder-dropped": Instrument(
        "odradek.forwarder.dropped", "counter", "{push}", "Pushes given up by the host"
    ),
    "forwarder-rejected": Instrument(
        "odradek.forwarder.rejected", "counter", "{push}", "Pushes the far side refused for good"
    ),
    "forwarder-queued": Instrument(
        "odradek.forwarder.queued", "gauge", "{push}", "Pushes that wait or are on their way"
    ),
    **QUOTA_INSTRUMENTS,
    **CONNECTION_INSTRUMENTS,
}
"""By row name."""


def rows(host: Host) -> Iterator[MetricRow]:
    """Everything the rooms count, as it is now."""
    yield from host.telemetry.metric_rows()
    for listener in host.listeners:
        labels = {"listener": listener.address.name}
        yield MetricRow("connections", "gauge", labels, len(listener.channels))
        yield MetricRow("connections-accepted", "counter", labels, listener.accepted)
        yield MetricRow("connections-refused", "counter", labels, listener.refused)
        if isinstance(listener, SaslListener):
            yield MetricRow("successful-authentication", "counter", labels, listener.authenticated)
            yield MetricRow("failed-authentication", "counter", labels, listener.authentication_failures)
    yield MetricRow("unexpected-errors", "counter", {}, host.dispatcher.unexpected_errors)
    for plugin in (*host.receivers.stats(), *host.enrichers.stats()):
        labels = {"plugin": plugin.name}
        yield MetricRow("plugin-pushes", "counter", labels, plugin.exported)
        yield MetricRow("plugin-failures", "counter", labels, plugin.failed)
        yield MetricRow("plugin-slow", "counter", labels, plugin.slow)
    yield from push_rows(host.telemetry.accounts, host.spool.writer.refused if host.spool else {})
    for runner in host.forwarders:
        yield from forwarder_rows(runner.name, runner.stats())
    yield from quota_rows(host.broker.quotas, host.clock.now_ms())
    yield from connection_rows(host.broker.connection_quotas, host.clock.now_ms())


def push_rows(accounts: PushAccounts, refused: Mapping[str, int]) -> Iterator[MetricRow]:
    """The accounts of all pushes: received = appended + empty + rejected + waiting."""
    yield MetricRow("push-received", "counter", {}, accounts.received)
    yield MetricRow("push-appended", "counter", {}, accounts.appended)
    yield MetricRow("push-empty", "counter", {}, accounts.empty)
    yield MetricRow("push-waiting", "gauge", {}, accounts.waiting)
    for code, pushes in accounts.rejected.items():
        yield MetricRow("push-rejected", "counter", {"error": code.name}, pushes)
    for reason, pushes in refused.items():
        yield MetricRow("spool-refused", "counter", {"reason": reason}, pushes)


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


async def take(source: Iterable[MetricRow]) -> dict[str, list[MetricRow]]:
    """Read rows on the loop without holding it up; by name."""
    by_name: dict[str, list[MetricRow]] = defaultdict(list)
    for index, row in enumerate(source):
        by_name[row.name].append(row)
        if index % ROWS_PER_STEP == 0:
            await asyncio.sleep(0)
    return by_name


class MetricsEndpoint:
    """``http://HOST:PORT/metrics`` on a thread of its own.

    Raises:
        ConfigError: The address is in use.
    """

    def __init__(self, address: Endpoint, host: Host) -> None:
        self.host = host
        self.loop = asyncio.get_running_loop()
        self.rows: Mapping[str, list[MetricRow]] = {}
        registry = prometheus_client.CollectorRegistry()
        limits: dict[type, int] = {ObservableCounter: MAX_SERIES, ObservableGauge: MAX_SERIES}
        self.reader = PrometheusMetricReader(registry=registry, cardinality_limits=limits)
        resource = Resource({"service.name": "odradek", "service.version": __version__})
        self.provider = MeterProvider(metric_readers=[self.reader], resource=resource, shutdown_on_exit=False)
        self.offer_instruments()
        try:
            self.server, self.thread = prometheus_client.start_http_server(
                address.port, address.host, registry
            )
        except OSError as error:
            reason = str(error.strerror).lower()
            raise ConfigError(
                "metrics.listener", f"cannot listen on {address.host}:{address.port}: {reason}"
            ) from error
        except UnicodeError as error:
            raise ConfigError("metrics.listener", f"{address.host} does not name a host") from error

    @property
    def bound_port(self) -> int:
        """The real port, also where the configuration says 0."""
        return int(self.server.server_port)

    def offer_instruments(self) -> None:
        """One observable instrument per row name. The first that a scrape asks fetches the rows of all."""
        meter = self.provider.get_meter("odradek")
        meter.create_observable_gauge("odradek.up", [self.refresh], description="1 while the host runs")
        for row_name, instrument in INSTRUMENTS.items():
            create = (
                meter.create_observable_counter
                if instrument.kind == "counter"
                else meter.create_observable_gauge
            )
            create(instrument.name, [self.observing(row_name)], instrument.unit, instrument.description)

    def refresh(self, _options: CallbackOptions) -> Sequence[Observation]:
        """Fetch the rows; on the thread of the scrape. A loop that does not answer in time leaves the old
        ones.
        """
        taking = asyncio.run_coroutine_threadsafe(take(rows(self.host)), self.loop)
        self.rows = taking.result(SCRAPE_TIMEOUT_S)
        return [Observation(1)]

    def observing(self, row_name: str) -> Callable[[CallbackOptions], Sequence[Observation]]:
        """The callback for the rows of one name. A mean of nothing is not shown."""

        def observe(_options: CallbackOptions) -> Sequence[Observation]:
            found = self.rows.get(row_name, ())
            return [Observation(row.value, row.attributes) for row in found if not math.isnan(row.value)]

        return observe

    def close(self) -> None:
        """Close the port and end the thread; blocks for up to half a second, so call it in a thread."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        self.provider.shutdown()
