"""``contrib/prometheus/alerts.yml``: metrics and labels exist, no metric is forgotten, the page lists all."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import prometheus_client
import yaml
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider

from odradek.programs.config import HostConfig
from odradek.settings.setting import walk
from odradek.wire.error_code import ErrorCode
from support.metric_rows import declared
from support.offenders import offenders
from support.reference_page import DOCS, ROOT, rows, sections

(GROUP,) = yaml.safe_load((ROOT / "contrib/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in GROUP["rules"]}
METRIC = re.compile(r"\b(?:odradek|kafka)_\w+")
LABEL = re.compile(r"(?:\b(?:by|on) \(([^)]*)\)|\{(\w+)[!=~])")
TEMPLATE = re.compile(r"\$labels\.(\w+)")
SETTING = re.compile(r"\b[a-z]+(?:\.[a-z]+){2,}\b")
ADDED = {"instance"}
"""Labels that Prometheus adds when it scrapes."""
WITHOUT_ALERT = {
    "workers of a gateway, which their parent starts again": (
        "odradek.gateway.workers",
        "odradek.gateway.worker.restarts",
        "odradek.gateway.former.workers",
    ),
    "rounds over the groups: where the last one is old, so is every figure of it in Prometheus": (
        "odradek.lag.active",
        "odradek.lag.round.time",
        "odradek.lag.round.age",
        "odradek.lag.rounds",
        "odradek.lag.series",
        "odradek.lag.series.left.out",
        "odradek.topology.uses",
        "odradek.topology.dropped",
        "odradek.lag.clients.round.time",
        "odradek.lag.clients.round.age",
        "odradek.lag.clients.rounds",
        "odradek.lag.clients.series",
        "odradek.lag.clients.series.left.out",
    ),
    "the first pushes of clients; a system of labels that is down fails, which has an alert": (
        "odradek.plugin.unlabeled",
    ),
    "incidents of clients, which have alerts of their own": (
        "odradek.incidents.clients",
        "odradek.incidents.series",
        "odradek.incidents.left.out",
    ),
    "counts of ordinary events, which an alert divides or compares by": (
        "odradek.connections.accepted",
        "kafka.server.socket.server.metrics.successful.authentication",
        "odradek.forwarder.offered",
        "odradek.forwarder.renamed.points",
        "odradek.push.appended",
        "odradek.cluster.acknowledged",
        "odradek.cluster.late",
        "odradek.push.empty",
        "odradek.push.kept",
        "odradek.push.lost",
        "odradek.push.narrowed",
        "odradek.push.repeated",
        "odradek.temporality.records",
        "odradek.cardinality.folded",
        "odradek.temporality.repeated.records",
        "odradek.temporality.points",
        "odradek.temporality.gaps",
        "odradek.temporality.overlaps",
        "odradek.temporality.bad.starts",
        "odradek.temporality.duplicates",
        "odradek.temporality.resets",
        "odradek.temporality.inexact",
        "odradek.temporality.dropped.exemplars",
        "odradek.temporality.forgotten.clients",
        "odradek.temporality.forgotten.series",
        "odradek.temporality.commits",
        "odradek.temporality.commit.time",
        "odradek.source.received",
        "odradek.source.appended",
        "odradek.source.empty",
        "odradek.source.repeated",
        "odradek.requests.long",
        "odradek.worker.requests",
        "odradek.requests.delayed",
        "odradek.turns.used.up",
        "odradek.authentication.delayed",
        "odradek.certificate.reloads",
        "odradek.jwks.fetches",
        "kafka.server.socket.server.metrics.successful.authentication.no.reauth",
        "kafka.server.socket.server.metrics.successful.reauthentication",
        "kafka.server.socket.server.metrics.reauthentication.latency",
        "odradek.gateway.added.latency.sum",
        "odradek.loop.lag.sum",
        "odradek.gateway.bytes",
        "odradek.gateway.pairs.opened",
        "odradek.gateway.requests",
        "odradek.gateway.requests.without.response",
        "odradek.gateway.responses.rewritten",
        "odradek.gateway.subscription.polls",
        "odradek.gateway.telemetry.answers",
    ),
    "moments of what another metric counts, or sees at its limit": (
        "odradek.connections.departing",
        "odradek.connections.unauthenticated",
        "odradek.connections.waiting",
        "odradek.gateway.nodes.known",
        "odradek.gateway.observed.clients",
        "odradek.gateway.observed.clients.evicted",
        "odradek.gateway.observed.clients.folded",
        "odradek.gateway.observed.clients.late",
        "odradek.gateway.outstanding",
        "odradek.gateway.pauses.in.flight",
        "odradek.gateway.pauses.slow.peer",
        "odradek.gateway.subscriptions",
        "odradek.gateway.subscriptions.of.cluster",
        "odradek.jwks.age",
        "odradek.jwks.keys",
        "odradek.plugin.queued",
        "odradek.forwarder.failing",
        "odradek.forwarder.partitions",
        "process.memory.usage",
        "process.uptime",
        "odradek.forwarder.partition.queued",
        "odradek.cluster.in.flight",
        "odradek.cluster.in.flight.size",
        "odradek.push.waiting",
        "odradek.temporality.clients",
        "odradek.cardinality.series",
        "odradek.temporality.held.size",
        "odradek.source.waiting",
        "odradek.source.rejected",
        "odradek.source.requests",
        "odradek.queued.paused",
        "odradek.worker.queued",
        "odradek.worker.queued.size",
    ),
}
WHOLE_GROUPS = (
    "odradek.share.",  # how much applications read is theirs to judge
    "kafka.server.client.metrics.",  # by client: an alert on each is noise, and `odradek.push.*` has all
    "kafka.server.produce.",  # quotas: to throttle is what the operator asked for
    "kafka.server.fetch.",
    "kafka.server.request.",
    "kafka.server.controller.mutation.",
    "kafka.server.leader.replication.",
    "kafka.server.follower.replication.",
    "kafka.server.alter.log.dirs.replication.",
    "kafka.server.socket.server.metrics.broker.connection",
    "kafka.server.socket.server.metrics.connection",
    "kafka.server.socket.server.metrics.ip.connection",
    "kafka.network.socket.server.metrics.",
)


@cache
def in_prometheus() -> dict[str, str]:
    """The name of each instrument by the name that Prometheus sees."""
    found = {"odradek_up": "odradek.up"}
    for instrument in declared().values():
        registry = prometheus_client.CollectorRegistry()
        provider = MeterProvider([PrometheusMetricReader(registry=registry)], shutdown_on_exit=False)
        meter = provider.get_meter("odradek")
        create = (
            meter.create_observable_counter if instrument.kind == "counter" else meter.create_observable_gauge
        )
        create(instrument.name, [lambda _: [Observation(1)]], instrument.unit)
        found |= {
            sample.name: instrument.name
            for family in registry.collect()
            for sample in family.samples
            if sample.name != "target_info"
        }
        provider.shutdown()
    return found


def metrics(rule: dict[str, Any]) -> set[str]:
    return set(METRIC.findall(rule["expr"]))


def labels(metric: str) -> set[str]:
    """The declared labels of a metric."""
    found = declared().get(in_prometheus()[metric])
    return set(found.labels) if found else set()


def names_what_exists(name: str) -> None:
    rule = ALERTS[name]

    known = set.union(ADDED, *(labels(metric) for metric in metrics(rule)))

    assert metrics(rule) <= in_prometheus().keys()
    used = {
        label.strip() for pair in LABEL.findall(rule["expr"]) for text in pair for label in text.split(",")
    }
    assert used - {""} <= known
    assert {label for text in rule["annotations"].values() for label in TEMPLATE.findall(text)} <= known


def test_an_alert_names_metrics_and_labels_that_exist() -> None:
    assert offenders(names_what_exists, ALERTS) == {}


def is_whole(name: str) -> None:
    rule = ALERTS[name]
    keys = {setting.name for _, setting in walk(HostConfig)} | {"batch.max.records"}

    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description"}
    text = rule["annotations"]["description"]
    assert set(SETTING.findall(text)) <= keys
    assert all((DOCS / found).exists() for found in re.findall(r"\b[a-z]+/[a-z-]+\.md", text))
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text + rule["expr"])) <= set(ErrorCode.__members__)


def test_an_alert_says_how_urgent_it_is_and_what_to_do() -> None:
    assert offenders(is_whole, ALERTS) == {}


def test_each_metric_has_an_alert_or_a_reason_to_have_none() -> None:
    alerted = {in_prometheus()[metric] for rule in ALERTS.values() for metric in metrics(rule)}
    silent = {name for names in WITHOUT_ALERT.values() for name in names}
    every = {"odradek.up", *declared()}

    assert every - alerted - silent == {name for name in every - alerted if name.startswith(WHOLE_GROUPS)}
    assert not alerted & silent


def test_the_page_lists_every_alert() -> None:
    written = rows(sections("reference/metrics.md")["Alerts"])

    assert {name: row[1] for name, row in written.items() if name.startswith("Odradek")} == {
        name: rule["labels"]["severity"] for name, rule in ALERTS.items()
    }
