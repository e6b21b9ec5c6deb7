"""The estimate: what a set of subscriptions brings, beside the one that is in force.

Of a client that already pushes all of the new metrics, the series are counted (`seen`). Of one that pushes
others, they are computed from the reference of client metrics, with the nodes, topics and partitions that its
pushes show (`modelled`). Of all others, they are the median of clients of the same software (`guessed`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

from odradek.plugin.troubles import JAVA
from odradek.telemetry.client_metrics_configs import ALL_METRICS
from odradek.telemetry.estimate.budgets import (
    ALL_KEY,
    CLIENT_KEY,
    PRINCIPAL_KEY,
    Exceeded,
    SeriesBudgets,
)
from odradek.telemetry.estimate.pushed_streams import Stream, StreamReader
from odradek.telemetry.estimate.recorded_clients import RecordedClient, RecordedClients
from odradek.telemetry.estimate.series_model import (
    NODE,
    PARTITION,
    ROLES,
    TOPIC,
    USUAL,
    Breadth,
    covers,
    library_of,
    metrics_by_level,
    modelled_series,
    role_of,
    role_of_client_id,
    selects,
)
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.narrowed_clients import narrower_plans
from odradek.telemetry.subscription_id import subscription_id
from odradek.telemetry.subscriptions import SubscriptionPlan, SubscriptionPlans
from odradek.wire.uuid_text import uuid_text

CLIENTS_A_STEP: Final = 20
USUAL_BYTES: Final = 130
"""Bytes of a series in a push, if no client of the same software has pushed: 90 to 260 in recordings."""
UNKNOWN: Final = "(unknown)"


class Basis(StrEnum):
    """How the series of a client were found."""

    SEEN = "seen"
    MODELLED = "modelled"
    GUESSED = "guessed"


class LiveClient(NamedTuple):
    """A client that may push."""

    metadata: ClientMetricsInstanceMetadata
    recorded: RecordedClient | None
    """Its pushes; None if there are none."""

    @property
    def principal(self) -> str:
        return UNKNOWN if self.recorded is None else self.recorded.principal


@dataclass(slots=True)
class Load:
    """What clients send."""

    clients: int = 0
    """Those that are asked for metrics."""
    series: int = 0
    pushes_per_s: float = 0
    samples_per_s: float = 0
    bytes_per_s: float = 0
    """Of payloads as the telemetry topic has them: decompressed, with labels."""

    def add(self, series: int, push_bytes: float, interval_ms: int) -> None:
        self.clients += 1
        self.series += series
        self.pushes_per_s += 1_000 / interval_ms
        self.samples_per_s += 1_000 * series / interval_ms
        self.bytes_per_s += 1_000 * push_bytes / interval_ms

    @property
    def bytes_per_push(self) -> float:
        """The mean; 0 without pushes."""
        return self.bytes_per_s / self.pushes_per_s if self.pushes_per_s else 0.0


@dataclass(slots=True)
class PrincipalSeries:
    """The clients of a principal."""

    clients: int = 0
    now: int = 0
    after: int = 0


@dataclass(slots=True)
class BasisShare:
    """The clients whose subscription changes, and whose series were found in one way."""

    clients: int = 0
    series: int = 0


@dataclass(slots=True)
class Estimate:
    """What the clients send now, and what they would send."""

    live: int = 0
    """All clients."""
    changed: int = 0
    """Those whose subscription becomes another."""
    now: Load = field(default_factory=Load)
    after: Load = field(default_factory=Load)
    principals: dict[str, PrincipalSeries] = field(default_factory=dict)
    bases: dict[Basis, BasisShare] = field(default_factory=lambda: {each: BasisShare() for each in Basis})
    exceeded: list[Exceeded] = field(default_factory=list)


@dataclass(slots=True)
class Outlook:
    """The future of one client."""

    client: LiveClient
    before: SubscriptionPlan
    after: SubscriptionPlan
    role: str | None
    now: int
    series: int | None
    """None until it is guessed."""
    basis: Basis

    @property
    def software(self) -> str:
        return self.client.metadata.client_software_name or ""

    @property
    def library(self) -> str:
        metadata = self.client.metadata
        return library_of(metadata.client_software_name, metadata.client_software_version)

    def likenesses(self) -> Iterator[tuple[object, ...]]:
        """Keys that it shares with other clients, the most similar ones first."""
        wanted = self.after.metrics
        version = self.client.metadata.client_software_version
        if self.role is not None:
            yield wanted, self.software, version, self.role
            yield wanted, self.software, self.role
        else:
            yield wanted, self.software, version
            yield wanted, self.software


def live_clients(
    recorded: RecordedClients, known: Iterable[ClientMetricsInstanceMetadata], now_ms: int
) -> list[LiveClient]:
    """The live clients of the records, and those that the host remembers beside them."""
    found = [LiveClient(client.metadata, client) for client in recorded.live(now_ms)]
    silent = (each for each in known if each.client_instance_id not in recorded.by_id)
    return found + [LiveClient(metadata, None) for metadata in silent]


def estimate(
    clients: Iterable[LiveClient],
    reader: StreamReader,
    before: SubscriptionPlans,
    after: SubscriptionPlans,
    budgets: SeriesBudgets,
) -> Generator[None, None, Estimate]:
    """Estimate a change of subscriptions, in steps of a millisecond.

    Args:
        clients: The live clients.
        reader: It has read their streams.
        before: The subscriptions in force.
        after: Those to come.
        budgets: What must not be exceeded.
    """
    outlooks: list[Outlook] = []
    for client in clients:
        before_plan, after_plan = before.plan(client.metadata), after.plan(client.metadata)
        outlooks.append(outlook(client, reader, before_plan, after_plan))
        if len(outlooks) % CLIENTS_A_STEP == 0:
            yield
    peers = Peers(outlooks)
    result, largest = Estimate(), Largest(budgets.client_series)
    for number, each in enumerate(outlooks):
        series = peers.guess(each) if each.series is None else each.series
        count(result, each, series, peers.series_bytes(each))
        largest.add(each, series)
        if number % CLIENTS_A_STEP == 0:
            yield
    result.exceeded = list(exceeded(result, largest, budgets))
    return result


def outlook(
    client: LiveClient, reader: StreamReader, before: SubscriptionPlan, after: SubscriptionPlan
) -> Outlook:
    """The future series of one client, unless they must be guessed."""
    recorded = client.recorded
    streams = frozenset[Stream]() if recorded is None else recorded.streams
    role = role_of(name for name, _ in streams) or role_of_client_id(client.metadata.client_id)
    found = Outlook(client, before, after, role, len(streams), None, Basis.GUESSED)
    if not after.metrics:
        found.series, found.basis = 0, Basis.SEEN
        return found
    known = () if recorded is None else selected_then(recorded, before)
    seen = sum(selects(after.metrics, name) for name, _ in streams)
    if known and covers(known, after.metrics):
        found.series, found.basis = seen, Basis.SEEN
    elif role is not None and streams:
        more = metrics_by_level(found.library, role, after.metrics, known)
        is_known_library = bool(metrics_by_level(found.library, role, (ALL_METRICS,), ()))
        series = modelled_series(more, breadth(found.library, role, known, streams, reader))
        if is_known_library and series is not None:
            found.series, found.basis = max(seen + series if known else series, seen), Basis.MODELLED
    return found


def selected_then(recorded: RecordedClient, plan: SubscriptionPlan) -> tuple[str, ...]:
    """The prefixes that the client was asked for when it pushed; empty if they are not known.

    The id of the subscription in its records tells: it is that of the plan, or of a narrower one if its
    pushes were too large.
    """
    for each in (plan, *(narrower for _, narrower in narrower_plans(plan))):
        if subscription_id(each.checksum, recorded.metadata.client_instance_id) == recorded.subscription_id:
            return each.metrics
    return ()


def breadth(
    library: str, role: str, known: tuple[str, ...], streams: frozenset[Stream], reader: StreamReader
) -> Breadth:
    """The nodes, topics and partitions that a client's streams show.

    A label that no stream has is 0 if the client was asked for metrics with it, and else not known.
    """
    labels = {reader.labels[attributes] for _, attributes in streams if attributes in reader.labels}
    asked = metrics_by_level(library, role, known, ()) if known else {}
    nodes = len({each.node for each in labels if each.node is not None})
    topics = len({each.topic for each in labels if each.topic is not None})
    partitions = len({each[1:] for each in labels if each.partition is not None})
    return Breadth(
        nodes if nodes or NODE in asked else None,
        topics if topics or TOPIC in asked else None,
        partitions if partitions or PARTITION in asked else None,
    )


class Peers:
    """What the clients whose series are known tell about the others."""

    def __init__(self, outlooks: Iterable[Outlook]) -> None:
        series: dict[tuple[object, ...], list[int]] = {}
        sizes: dict[str, list[float]] = {}
        for each in outlooks:
            if each.series is not None and each.after.metrics:
                for key in each.likenesses():
                    series.setdefault(key, []).append(each.series)
            recorded = each.client.recorded
            if recorded is not None and recorded.pushed_streams:
                size = recorded.push_bytes / recorded.pushed_streams
                sizes.setdefault(each.software, []).append(size)
        self.series: Mapping[tuple[object, ...], float] = {key: median(all_) for key, all_ in series.items()}
        self.sizes: Mapping[str, float] = {software: median(all_) for software, all_ in sizes.items()}

    def guess(self, client: Outlook) -> int:
        """The median of clients like this one; without any, a client of a usual size."""
        for key in client.likenesses():
            if key in self.series:
                return round(self.series[key])
        role, wanted = client.role or ROLES[0], client.after.metrics
        theirs = metrics_by_level(client.library, role, wanted, ())
        return modelled_series(theirs or metrics_by_level(JAVA, role, wanted, ()), USUAL) or 0

    def series_bytes(self, client: Outlook) -> float:
        """The size of one series in a push of the client."""
        recorded = client.client.recorded
        if recorded is not None and recorded.pushed_streams:
            return recorded.push_bytes / recorded.pushed_streams
        return self.sizes.get(client.software, USUAL_BYTES)


@dataclass(slots=True)
class Largest:
    """The clients whose series would exceed the budget of a client, and the largest of them."""

    limit: int
    series: int = 0
    client_instance_id: bytes = b""
    clients: int = 0

    def add(self, client: Outlook, series: int) -> None:
        if self.limit and series > max(self.limit, client.now):
            self.clients += 1
            if series > self.series:
                self.series, self.client_instance_id = series, client.client.metadata.client_instance_id


def count(result: Estimate, client: Outlook, series: int, series_bytes: float) -> None:
    """Add one client to the result."""
    result.live += 1
    principal = result.principals.setdefault(client.client.principal, PrincipalSeries())
    principal.clients += 1
    principal.now += client.now
    principal.after += series
    if client.before.metrics:
        result.now.add(client.now, client.now * series_bytes, client.before.push_interval_ms)
    if client.after.metrics:
        result.after.add(series, series * series_bytes, client.after.push_interval_ms)
    if client.before != client.after:
        result.changed += 1
        share = result.bases[client.basis]
        share.clients += 1
        share.series += series


def exceeded(result: Estimate, largest: Largest, budgets: SeriesBudgets) -> Iterator[Exceeded]:
    """The budgets that would be exceeded, and by more than now."""
    if budgets.series and result.after.series > max(budgets.series, result.now.series):
        yield Exceeded(ALL_KEY, "", budgets.series, result.after.series, 1)
    limit = budgets.principal_series
    over = {
        name: each.after
        for name, each in result.principals.items()
        if limit and each.after > max(limit, each.now)
    }
    if over:
        name = max(over, key=lambda name: over[name])
        yield Exceeded(PRINCIPAL_KEY, name, limit, over[name], len(over))
    if largest.clients:
        scope = uuid_text(largest.client_instance_id)
        yield Exceeded(CLIENT_KEY, scope, largest.limit, largest.series, largest.clients)
