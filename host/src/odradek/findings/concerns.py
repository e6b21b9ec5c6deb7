"""The metrics of a client by concern, the standard ones of KIP-714 first: what pages and dashboards draw."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from odradek.findings import incidents
from odradek.findings.client_metrics import ADMIN, PREFIX
from odradek.findings.troubles import CONSUMER, COORDINATOR, FETCH, PRODUCER, SHARE

ROLES: Final = (PRODUCER, CONSUMER, f"{PREFIX}{ADMIN}.")
"""Beginnings of the names of a client's metrics."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Metrics that belong on one pair of axes."""

    title: str
    metrics: tuple[str, ...]
    instead: tuple[str, ...] = ()
    """Metrics for clients that have none of ``metrics``."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names of metrics."""
        return (*self.metrics, *self.instead)

    def of(self, known: Container[str]) -> tuple[str, ...]:
        """The metrics to draw for a client that has the known ones."""
        found = [tuple(name for name in names if name in known) for names in (self.metrics, self.instead)]
        return found[0] or found[1]


@dataclass(frozen=True, slots=True)
class Concern:
    """Charts that answer one question about a client."""

    id: str
    title: str
    charts: tuple[Chart, ...]


def both(*stems: str) -> tuple[str, ...]:
    """The maximum and the mean of metrics."""
    return tuple(f"{stem}.{stat}" for stem in stems for stat in ("max", "avg"))


def of_roles(name: str) -> tuple[str, ...]:
    """A metric that clients of all roles report."""
    return tuple(role + name for role in ROLES)


def differing_words(name: str, names: tuple[str, ...]) -> str:
    """The words of a metric's name that others of its chart do not have; empty for the only one."""
    words = [each.split(".") for each in names]
    first, last = common(words), common([each[::-1] for each in words])
    found = name.split(".")
    return ".".join(found[first : len(found) - last])


def common(names: list[list[str]]) -> int:
    """The number of words that names have in common at their beginning."""
    columns = enumerate(zip(*names, strict=False))
    return next((place for place, words in columns if len(set(words)) > 1), min(map(len, names)))


CONCERNS: Final = (
    Concern(
        "requests",
        "Requests to brokers",
        (
            Chart("request latency by broker", both(*of_roles("node.request.latency"))),
            Chart("request latency", both(PRODUCER + "request.latency")),
            Chart("fetch latency", both(FETCH + "fetch.latency")),
            Chart("requests in flight", (PRODUCER + "requests.in.flight",)),
            Chart("requests sent", of_roles("request.rate"), of_roles("request.total")),
        ),
    ),
    Concern(
        "throttling",
        "Throttling by quotas",
        (
            Chart("throttle time of produce requests", both(PRODUCER + "produce.throttle.time")),
            Chart("throttle time of fetch requests", both(FETCH + "fetch.throttle.time")),
        ),
    ),
    Concern(
        "sending",
        "Records sent",
        (
            Chart("time of records in the producer's queue", both(PRODUCER + "record.queue.time")),
            Chart("size of a batch", both(PRODUCER + "batch.size")),
            Chart(
                "buffer of the producer",
                (PRODUCER + "buffer.available.bytes", PRODUCER + "buffer.total.bytes"),
            ),
            Chart("records sent", (PRODUCER + "record.send.rate",), (PRODUCER + "record.send.total",)),
            Chart("bytes sent", (PRODUCER + "outgoing.byte.rate",), (PRODUCER + "outgoing.byte.total",)),
        ),
    ),
    Concern(
        "errors",
        "Retries and errors",
        (
            Chart("records retried", (PRODUCER + "record.retry.total",), (PRODUCER + "record.retry.rate",)),
            Chart(
                "records lost to errors",
                (PRODUCER + "record.error.total",),
                (PRODUCER + "record.error.rate",),
            ),
            Chart("sends without buffer", (PRODUCER + "buffer.exhausted.total",)),
        ),
    ),
    Concern(
        "reading",
        "Records read",
        (
            Chart("largest lag of a partition", (FETCH + "records.lag.max",)),
            Chart("lag by partition", (FETCH + "records.lag",)),
            Chart("records read", (FETCH + "records.consumed.rate",), (FETCH + "records.consumed.total",)),
            Chart("bytes read", (FETCH + "bytes.consumed.rate",), (FETCH + "bytes.consumed.total",)),
            Chart("share of the time in poll, waiting for records", (CONSUMER + "poll.idle.ratio.avg",)),
            Chart("time between polls", both(CONSUMER + "time.between.poll")),
        ),
    ),
    Concern(
        "group",
        "Consumer group",
        (
            Chart("assigned partitions", (COORDINATOR + "assigned.partitions",)),
            Chart("rebalances", (COORDINATOR + "rebalance.total", COORDINATOR + "failed.rebalance.total")),
            Chart("time in rebalances", (COORDINATOR + "rebalance.latency.total",)),
            Chart("duration of a rebalance", both(COORDINATOR + "rebalance.latency")),
            Chart("commit latency", both(COORDINATOR + "commit.latency")),
        ),
    ),
    Concern(
        "sharing",
        "Share consumer",
        (
            Chart("records of share groups", (SHARE + "records.consumed.rate",)),
            Chart("acknowledgements sent", (SHARE + "acknowledgements.send.rate",)),
            Chart("acknowledgements that failed", (SHARE + "acknowledgements.error.total",)),
            Chart("latency of share fetches", both(SHARE + "fetch.latency")),
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
    Concern(
        "incidents",
        "Seen by the host or a gateway",
        (
            Chart("failed logins", (incidents.FAILED_LOGINS,)),
            Chart("time held back by a quota", (incidents.THROTTLED,)),
            Chart("errors of topics that end", (incidents.TOPIC_REFUSALS,)),
            Chart("errors of topics that are tried again", (incidents.TOPIC_ERRORS,)),
            Chart("topics that do not exist", (incidents.UNKNOWN_TOPICS,)),
            Chart("members that come and go", (incidents.GROUP_JOINS, incidents.GROUP_LEAVES)),
            Chart("time that members hang", (incidents.STUCK,)),
            Chart("rebalances that members begin", (incidents.GROUP_REJOINS,)),
            Chart("errors of a group", (incidents.GROUP_ERRORS,)),
            Chart("lost", (incidents.LOST,)),
        ),
    ),
)
"""In the order in which a person looks."""
