"""The metrics of a host's listeners, requests, plugins and pushes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from odradek.broker.answering import Answering
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.log.log_manager import LogManager
from odradek.meters.authentication_metrics import authentication_rows
from odradek.metrics.metric import MetricRow, Metrics
from odradek.net.listener import Listener
from odradek.net.turns import Turns
from odradek.plugin.plugin_stats import PluginStats
from odradek.process.payload_workers import PayloadWorkers
from odradek.telemetry.kept_pushes import KeptPushes
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.record_source import RecordSource

LISTENERS = Metrics[Listener]("odradek.connections", "listener")
LISTENERS.gauge("", "{connection}", "Open connections", "channels")
LISTENERS.counter("accepted", "{connection}", "Connections since the start")
LISTENERS.counter(
    "refused", "{connection}", "Connections closed because of malformed requests or PROXY headers"
)

TURNS = Metrics[Turns]("odradek")
TURNS.gauge("connections.waiting", "{connection}", "Connections whose requests wait for a turn", len)
TURNS.gauge(
    "connections.departing", "{connection}", "Connections whose clients have left, to be ended", "departures"
)
TURNS.counter("requests.delayed", "{request}", "Requests that waited their turn on a busy loop", "delayed")
TURNS.counter("turns.used.up", "{turn}", "Turns that ended with requests left", "used_up")

BROKER = Metrics[Answering]("odradek")
BROKER.counter("authorization.denied", "{check}", "Rights that clients lacked", "audit.denials")
BROKER.counter(
    "requests.long", "{request}", "Requests that took more than one turn of the loop", "steps.deferred"
)
BROKER.gauge("requests.long.waiting", "{request}", "Such requests that are not answered yet", "steps.tasks")
BROKER.counter(
    "responses.refused", "{response}", "Responses that would have been too large", "large_responses_refused"
)
DISPATCHER = Metrics[Dispatcher]("odradek")
DISPATCHER.counter("unexpected.errors", "{error}", "Errors that are bugs of the host")

LOGS = Metrics[LogManager]("kafka.log.log.manager.offline.log.directory")
LOGS.gauge("count", "{directory}", "Log directories that are offline because their disk failed", "offline")

WORKERS = Metrics[PayloadWorkers]("odradek.worker", "worker")
WORKERS.counter("requests", "{request}", "Requests whose content a worker process opened", "taken")
WORKERS.counter("refused", "{request}", "Requests without room in the queue of a worker")
WORKERS.gauge("queued", "{request}", "Requests that wait for a worker process", "queue")
WORKERS.gauge("queued.size", "By", "Bytes that wait for a worker process", "queued_bytes")

PLUGINS = Metrics[PluginStats, int]("odradek.plugin", "plugin")
PLUGINS.counter("pushes", "{push}", "Pushes passed to a plugin, or clients it labeled", "exported")
PLUGINS.counter("failures", "{push}", "Pushes for which a plugin raised an exception", "failed")
PLUGINS.counter("slow", "{push}", "Pushes for which a plugin blocked the loop")
PLUGINS.counter("dropped", "{push}", "Pushes without room in the queue of a plugin's thread")
PLUGINS.counter("unlabeled", "{push}", "Pushes without the labels of a plugin, late or not to be had")
PLUGINS.gauge("queued", "{push}", "Pushes that wait for a plugin's thread", lambda _, queued: queued)

PUSHES = Metrics[PushAccounts]("odradek.push")
"""received = appended + empty + repeated + rejected + kept + waiting."""
PUSHES.counter("received", "{push}", "PushTelemetry requests")
PUSHES.counter("appended", "{push}", "Accepted pushes with metrics")
PUSHES.counter("empty", "{push}", "Accepted pushes without metrics")
PUSHES.counter("rejected", "{push}", "Refused pushes that were not stored, by error code", by="error")
PUSHES.counter("kept", "{push}", "Pushes that were refused and stored, by error code", by="error")
PUSHES.counter("repeated", "{push}", "Accepted pushes that were stored before, when refused")
PUSHES.gauge("waiting", "{push}", "Pushes being decompressed or written")
LOST = Metrics[KeptPushes]("odradek.push")
"""Some of the rejected ones."""
LOST.counter("lost", "{push}", "Refused pushes whose metrics no push will bring again", by="error reason")
SPOOL = Metrics[Mapping[str, int]]("odradek.spool")
SPOOL.counter("refused", "{push}", "Valid pushes that could not be stored", lambda it: it, by="reason")

SOURCES = Metrics[PushAccounts, int | None]("odradek.source", "source")
"""received = appended + empty + repeated + rejected + waiting."""
SOURCES.counter(
    "received",
    "{record}",
    "Records that no client pushed to this host: observed ones, and those that plugins brought in",
)
SOURCES.counter("appended", "{record}", "Records of a source that were stored")
SOURCES.counter("empty", "{record}", "Records of a source without metrics, stored")
SOURCES.counter("repeated", "{record}", "Records of a source that were already stored, and not stored again")
SOURCES.gauge("lag", "{record}", "Records that wait where a source reads them", lambda _, lag: lag)
SOURCES.gauge("waiting", "{record}", "Records of a source being written")
SOURCES.counter("rejected", "{record}", "Records of a source not stored, by error code", by="error")
SENDERS = Metrics[RecordSource]("odradek.source", "source")
SENDERS.counter("requests", "{request}", "Requests of a source's senders, by outcome", by="outcome")


def listener_rows(listeners: Sequence[Listener]) -> Iterator[MetricRow]:
    """The connections of each listener, and of all together."""
    for listener in listeners:
        yield from LISTENERS.rows(listener, listener=listener.address.name)
    yield from authentication_rows(listeners)
    if listeners:
        yield from TURNS.rows(listeners[0].turns)


def request_rows(dispatcher: Dispatcher, broker: Answering) -> Iterator[MetricRow]:
    """The requests that hit a bug, lacked a right, asked for too much, or whose work runs in steps."""
    yield from DISPATCHER.rows(dispatcher)
    yield from BROKER.rows(broker)


def worker_rows(workers: Mapping[str, PayloadWorkers | None]) -> Iterator[MetricRow]:
    """The queues of the worker processes, by what they open; none without processes."""
    for name, each in workers.items():
        if each is not None:
            yield from WORKERS.rows(each, worker=name)


def plugin_rows(plugins: Iterable[PluginStats], queued: Mapping[str, int]) -> Iterator[MetricRow]:
    """The calls of each plugin on the loop and on its thread, and what waits for that thread."""
    by_name: dict[str, list[PluginStats]] = {}
    for stats in plugins:
        by_name.setdefault(stats.name, []).append(stats)
    for name, all_stats in by_name.items():
        counts = [(each.exported, each.failed, each.slow, each.dropped, each.unlabeled) for each in all_stats]
        exported, failed, slow, dropped, unlabeled = map(sum, zip(*counts, strict=True))
        of_all = PluginStats(name, exported, failed, slow, dropped, unlabeled)
        yield from PLUGINS.rows(of_all, queued.get(name, 0), plugin=name)


def push_rows(accounts: PushAccounts, kept: KeptPushes, refused: Mapping[str, int]) -> list[MetricRow]:
    """The accounts of all pushes at one moment."""
    return [*PUSHES.rows(accounts), *LOST.rows(kept), *SPOOL.rows(refused)]


def source_rows(source: RecordSource, lag: int | None = None) -> Iterator[MetricRow]:
    """The account of a source, and its lag."""
    yield from SOURCES.rows(source.accounts, lag, source=source.name)
    yield from SENDERS.rows(source, source=source.name)
