"""Where the time of a client's requests goes, beside its peers and its own past.

A client tells how long a request takes until its response is there, a gateway or a host how long the cluster
takes. What is between the two is the network. Where only one of them tells, the parts stay together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from odradek.findings.client_metrics import client_metrics
from odradek.findings.node_names import node_name
from odradek.findings.troubles import CONSUMER, FETCH, PRODUCER
from odradek_console.engine.client import Client
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.libraries import reports
from odradek_console.engine.movement import BETWEEN, IDLE
from odradek_console.figures import PUSHED, SEEN, tellers_of
from odradek_console.json_form import JsonRow
from odradek_console.pictures import ALIKE, peers_of
from odradek_console.rows import ClientDetail, ClientRow, SeriesRow
from odradek_console.text import counted, readable

Values = Mapping[tuple[str, str], float]
"""By who tells it, and metric."""
RECENT_MS: Final = 900_000
"""What is newer is no past to compare with."""
LONGER: Final = 1.5
"""Times what is usual."""
LEAST_MS: Final = 5.0


class Part(NamedTuple):
    """A part of the way of a request."""

    title: str
    what: str


QUEUE, POLL, THROTTLE, NETWORK, BROKER, REQUEST = "queue", "poll", "throttle", "network", "broker", "request"
PARTS: Final = {
    QUEUE: Part("Queue", "a batch waits in the producer"),
    POLL: Part("Poll", "the application works between two calls of poll()"),
    THROTTLE: Part("Throttle", "a quota holds the client back"),
    NETWORK: Part("Network", "between the client and who observes it"),
    BROKER: Part("Broker", "until the response is there, as observed"),
    REQUEST: Part("Network and broker", "until the response is there, as the client sees it"),
}
"""In the order of the page."""


class Role(NamedTuple):
    """The metrics of a role."""

    title: str
    prefix: str
    waits: str
    """The part before a request, and its metric."""
    waiting: str
    throttled: str
    request: tuple[str, ...]
    """The first one that is told by both counts, else the first one."""

    @property
    def needs(self) -> list[tuple[str, ...]]:
        """What has to be told: one metric of each."""
        idle = [(IDLE,)] if self.waits == POLL else []
        return [(self.waiting,), (self.throttled,), self.request, *idle]


ROLES: Final = (
    Role(
        "Sending records",
        PRODUCER,
        QUEUE,
        PRODUCER + "record.queue.time.avg",
        PRODUCER + "produce.throttle.time.avg",
        (PRODUCER + "node.request.latency.avg", PRODUCER + "request.latency.avg"),
    ),
    Role(
        "Reading records",
        CONSUMER,
        POLL,
        BETWEEN,
        FETCH + "fetch.throttle.time.avg",
        (FETCH + "fetch.latency.avg", CONSUMER + "node.request.latency.avg"),
    ),
)
NEEDED: Final = frozenset(name for each in ROLES for names in each.needs for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow(JsonRow):
    """A part of the way of a request."""

    role: str
    id: str
    title: str
    what: str
    value_ms: float | None
    """The mean, at the slowest broker; None if nobody tells it."""
    peers_ms: float | None
    """The median of the peers."""
    usual_ms: float | None
    """The median of its own past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall(JsonRow):
    """Where the time of a client's requests goes."""

    client_instance_id: str
    verdict: str
    peers: str
    """Whose median it is, such as ``3 clients of the group billing``; empty without peers."""
    past_ms: int
    """How far its own past goes back; 0 without any."""
    steps: tuple[StepRow, ...]
    missing: tuple[str, ...]
    """Metrics that its library has, and that it does not push."""
    missing_series: int
    """The series that they would be."""
    not_reported: tuple[str, ...]
    """Metrics that its library does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The values of a client now, and those of its peers."""

    values: Values
    peers: str
    of_peers: Sequence[Values]


def beside_of(fleet: Fleet, client: Client, now_ms: int) -> Beside:
    """The values of a client and of its peers. The caller holds the lock."""
    values = values_of(fleet, client)
    for kind, key in ALIKE.items():
        alike = peers_of(fleet, client, now_ms, kind)
        peers = (values_of(fleet, each) for each in alike if fleet.identities.face(each) is each)
        told = [each for each in peers if values.keys() & each.keys()]
        if told:
            whose = f"{counted(len(told), 'client')} of the {kind} {key(client.entry)[0]}"
            return Beside(values=values, peers=whose, of_peers=told)
    return Beside(values=values, peers="", of_peers=())


def values_of(fleet: Fleet, client: Client) -> Values:
    """The latest values of a client, of several nodes and gateways the largest."""
    found: dict[tuple[str, str], float] = {}
    for teller, series in tellers_of(fleet, client):
        source = SEEN if teller.entry.observed else PUSHED
        since_ms = series.fresh_ms(teller.entry.interval_ms)
        for metric in NEEDED & series.places.keys():
            for place in series.whole(metric):
                point = series.last(place)
                if point is not None and point.time_ms >= since_ms and is_told(place.labels, point.value):
                    found[source, metric] = max(point.value, found.get((source, metric), 0.0))
    return found


def past_of(rows: Iterable[SeriesRow], until_ms: int, observed: bool) -> tuple[Values, int]:
    """The medians of what a client told before a time, and the time of its first value."""
    found, first_ms = dict[tuple[str, str], float](), until_ms
    for row in rows:
        points = [each for each in row.points if each[0] < until_ms and is_told(row.labels, each[1])]
        if row.metric in NEEDED and points:
            of_tables = SEEN if observed else PUSHED
            at = (row.source if row.source in (PUSHED, SEEN) else of_tables), row.metric
            found[at] = max(median(value for _, value in points), found.get(at, 0.0))
            first_ms = min(first_ms, points[0][0])
    return found, first_ms


def is_told(labels: Iterable[tuple[str, str]], value: float) -> bool:
    """Whether a value is one of a broker, not of the first address or of a coordinator's connection."""
    node = dict(labels).get("node_id")
    return math.isfinite(value) and (node is None or node_name(node).isdecimal())


def times(role: Role, values: Values) -> dict[str, float]:
    """The time of each part that is told, in milliseconds."""

    def told(metric: str) -> float | None:
        return values.get((PUSHED, metric), values.get((SEEN, metric)))

    waiting, idle = told(role.waiting), told(IDLE)
    if waiting is not None and role.waits == POLL:
        waiting *= 1 - min(1.0, idle or 0.0)
    found: dict[str, float | None] = {role.waits: waiting, THROTTLE: told(role.throttled)}
    pairs = [(values.get((PUSHED, name)), values.get((SEEN, name))) for name in role.request]
    pushed, seen = min(pairs, key=lambda each: each.count(None))
    if pushed is not None and seen is not None:
        found |= {NETWORK: max(0.0, pushed - seen), BROKER: seen}
    else:
        found |= {REQUEST: pushed, BROKER: seen}
    return {name: value for name, value in found.items() if value is not None}


def waterfall(
    detail: ClientDetail, beside: Beside, now_ms: int, asks_for: Callable[[str], bool] = lambda metric: False
) -> Waterfall:
    """Where the time of a client goes.

    Args:
        detail: The client, with the points of its past.
        beside: The values now.
        now_ms: Epoch milliseconds.
        asks_for: Whether the client is told to push a metric.
    """
    row, until_ms = detail.row, now_ms - RECENT_MS
    past, first_ms = past_of(detail.series, until_ms, row.observed)
    told = {name for _, name in beside.values} or {each.metric for each in detail.series}
    roles = [each for each in ROLES if any(name.startswith(each.prefix) for name in told)]
    steps = tuple(step for role in roles for step in steps_of(role, beside, past))
    missing, not_reported = list[str](), list[str]()
    for names in (each for role in roles for each in role.needs):
        reported = [each for each in names if reports(row.software, row.version, each)]
        is_pushed = any((PUSHED, each) in beside.values for each in names)
        if not reported:
            not_reported.append(names[0])
        elif not (is_pushed or row.observed or any(map(asks_for, reported))):
            missing.append(reported[0])
    return Waterfall(
        client_instance_id=row.client_instance_id,
        verdict=verdict(row, steps),
        peers=beside.peers,
        past_ms=until_ms - first_ms,
        steps=steps,
        missing=tuple(missing),
        missing_series=sum(series_of(each, row) for each in missing),
        not_reported=tuple(not_reported),
    )


def steps_of(role: Role, beside: Beside, past: Values) -> Iterator[StepRow]:
    """The parts that are told now or were told, in their order."""
    now, before, peers = times(role, beside.values), times(role, past), defaultdict[str, list[float]](list)
    for each in beside.of_peers:
        for name, value in times(role, each).items():
            peers[name].append(value)
    for name, part in PARTS.items():
        if name in now or name in before or (name in peers and name in (role.waits, THROTTLE)):
            yield StepRow(
                role=role.title,
                id=name,
                title=part.title,
                what=part.what,
                value_ms=now.get(name),
                peers_ms=median(peers[name]) if name in peers else None,
                usual_ms=before.get(name),
            )


def series_of(metric: str, row: ClientRow) -> int:
    """The series that a metric has at a client: one of each broker, if it is told by broker."""
    known = client_metrics().get(metric)
    by_node = known is not None and "node_id" in known.levels[0]
    return max(1, len(row.brokers)) if by_node else 1


def verdict(row: ClientRow, steps: Sequence[StepRow]) -> str:
    """What makes a client slow, in words: what takes longer than at its peers or in its past."""
    known = [(each, each.value_ms) for each in steps if each.value_ms is not None]
    if not known:
        return ""
    if all(each.role == ROLES[1].title for each, _ in known) and row.figure("lag") == 0:
        return "It has read all that there is: a fetch waits for new records."
    longer = [found for each, value in known for found in compared(each, value)]
    if longer:
        return max(longer)[1]
    longest, value = max(known, key=lambda each: each[1])
    most = f"{longest.title.lower()}, {readable(value, 'ms')}"
    return f"No part takes longer than at its peers or than usual. The longest is: {most}."


def compared(step: StepRow, value: float) -> Iterator[tuple[float, str]]:
    """By how much a part takes longer than at the peers, or than usual, and that in words."""
    for usual, whose in ((step.peers_ms, "its peers have"), (step.usual_ms, "it usually has")):
        if usual is not None and value > LONGER * usual and value - usual > LEAST_MS:
            text = (
                f"{step.title}: {readable(value, 'ms')}, where {whose} {readable(usual, 'ms')}; {step.what}."
            )
            yield value - usual, text
