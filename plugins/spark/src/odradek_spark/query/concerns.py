"""The metrics of a client by concern, the standard ones of KIP-714 first.

A concern is a page of a picture and a part of a table. The conditions that are troubles, with their names and
advice, come from `odradek.findings.troubles`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odradek.findings.troubles import TROUBLES, Trouble
from odradek_spark.query.units import duration, said
from odradek_spark.query.views import PREFIX


@dataclass(frozen=True, slots=True)
class Chart:
    """Metrics that belong on one pair of axes."""

    title: str
    metrics: tuple[str, ...]
    """Names without ``org.apache.kafka.``."""
    instead: tuple[str, ...] = ()
    """Metrics for clients that have none of ``metrics``."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of metrics."""
        return (*self.metrics, *self.instead)


@dataclass(frozen=True, slots=True)
class Concern:
    """Charts that answer one question about a client."""

    id: str
    title: str
    charts: tuple[Chart, ...]


def both(*stems: str) -> tuple[str, ...]:
    """The maximum and the mean of metrics."""
    return tuple(f"{stem}.{stat}" for stem in stems for stat in ("max", "avg"))


def of_roles(name: str, *roles: str) -> tuple[str, ...]:
    """A metric that clients of several roles report."""
    return tuple(f"{role}.{name}" for role in roles or ("producer", "consumer", "admin.client"))


FETCH: Final = "consumer.fetch.manager."
GROUP: Final = "consumer.coordinator."
CONCERNS: Final = (
    Concern(
        "requests",
        "Requests to brokers",
        (
            Chart(
                "request latency by broker",
                both(*of_roles("node.request.latency")),
                both("producer.request.latency"),
            ),
            Chart("fetch latency", both(FETCH + "fetch.latency")),
            Chart("requests in flight", ("producer.requests.in.flight",)),
            Chart("requests sent", of_roles("request.rate")),
        ),
    ),
    Concern(
        "throttling",
        "Throttling by quotas",
        (
            Chart("throttle time of produce requests", both("producer.produce.throttle.time")),
            Chart("throttle time of fetch requests", both(FETCH + "fetch.throttle.time")),
        ),
    ),
    Concern(
        "sending",
        "Records sent",
        (
            Chart("time of records in the producer's queue", both("producer.record.queue.time")),
            Chart(
                "buffer of the producer", ("producer.buffer.available.bytes", "producer.buffer.total.bytes")
            ),
            Chart("records sent", ("producer.record.send.rate",)),
            Chart("bytes sent", ("producer.outgoing.byte.rate",)),
        ),
    ),
    Concern(
        "errors",
        "Retries and errors",
        (
            Chart("records retried", ("producer.record.retry.total",)),
            Chart("records lost to errors", ("producer.record.error.total",)),
            Chart("sends without buffer", ("producer.buffer.exhausted.total",)),
        ),
    ),
    Concern(
        "reading",
        "Records read",
        (
            Chart("largest lag of a partition", (FETCH + "records.lag.max",)),
            Chart("records read", (FETCH + "records.consumed.rate",)),
            Chart("bytes read", (FETCH + "bytes.consumed.rate",)),
            Chart("share of the time in poll, waiting for records", ("consumer.poll.idle.ratio.avg",)),
        ),
    ),
    Concern(
        "group",
        "Consumer group",
        (
            Chart("assigned partitions", (GROUP + "assigned.partitions",)),
            Chart("rebalances", (GROUP + "rebalance.total", GROUP + "failed.rebalance.total")),
            Chart("time in rebalances", (GROUP + "rebalance.latency.total",)),
            Chart("duration of a rebalance", both(GROUP + "rebalance.latency")),
            Chart("commit latency", both(GROUP + "commit.latency")),
        ),
    ),
    Concern(
        "connections",
        "Connections",
        (
            Chart("connections opened", of_roles("connection.creation.total")),
            Chart("connections opened, rate", of_roles("connection.creation.rate")),
            Chart("connections open", of_roles("connection.count")),
            Chart("failed authentications", of_roles("failed.authentication.total")),
        ),
    ),
)
"""In the order in which a person looks."""
ORDER: Final = {
    PREFIX + name: place
    for place, name in enumerate(
        name for concern in CONCERNS for chart in concern.charts for name in chart.names
    )
}
"""The place of each metric."""


def place(name: str) -> int:
    """The place of a metric among those that matter; all others come after them."""
    return ORDER.get(name, len(ORDER))


def troubles_of(names: Iterable[str]) -> list[Trouble]:
    """The troubles that metrics show, by their full names."""
    known = set(names)
    return [each for each in TROUBLES if known.intersection(each.metrics.values())]


def is_limit(trouble: Trouble) -> bool:
    """Whether the threshold is a value of the metric itself, and not of its increase or share."""
    return not trouble.over_s and not trouble.per


def condition(op: str, threshold: float, unit: str, for_s: float = 0.0) -> str:
    """A condition for people: ``above 5 s for 3 min``."""
    side = {">": "above", ">=": "from", "<": "below", "<=": "up to"}[op]
    held = f" for {duration(for_s)}" if for_s else ""
    if op == ">" and not threshold:
        return f"any{held}"
    return f"{side} {said(threshold, unit)}{held}"


def stated(trouble: Trouble) -> str:
    """The condition of a trouble."""
    return condition(trouble.op, trouble.threshold, trouble.unit, trouble.for_s)


def concerns_of(names: Iterable[str]) -> list[tuple[Concern, list[tuple[Chart, tuple[str, ...]]]]]:
    """The concerns and charts for which there are metrics, each chart with the full names to draw."""
    known = set(names)
    found = []
    for concern in CONCERNS:
        charts = [(chart, drawn_names(chart, known)) for chart in concern.charts]
        if any(drawn for _, drawn in charts):
            found.append((concern, [(chart, drawn) for chart, drawn in charts if drawn]))
    return found


def drawn_names(chart: Chart, known: set[str]) -> tuple[str, ...]:
    """The full names of a chart's metrics that there are."""
    found = [
        tuple(PREFIX + name for name in names if PREFIX + name in known)
        for names in (chart.metrics, chart.instead)
    ]
    return found[0] or found[1]
