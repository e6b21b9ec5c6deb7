"""The estimate: the load of a set of subscriptions, compared with that of the set in force.

Of a client that already pushes all of the new metrics, the series are counted (`seen`). Of one that pushes
others, they are computed from the reference of client metrics, with the nodes, topics and partitions that its
pushes show (`modelled`). Of all others, they are the median of clients of the same software (`guessed`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from odradek.estimate.budgets import (
    ALL_KEY,
    APP_KEY,
    CLIENT_KEY,
    PRINCIPAL_KEY,
    Exceeded,
    SubscriptionBudgets,
)
from odradek.estimate.futures import Basis, Futures, LiveClient, Outlook, Peers
from odradek.estimate.pushed_streams import StreamReader
from odradek.estimate.series_model import made_series
from odradek.telemetry.subscriptions import SubscriptionPlans
from odradek.wire.uuid_text import uuid_text

CLIENTS_A_STEP: Final = 20


@dataclass(slots=True)
class Load:
    """The metrics that clients send."""

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
    def in_prometheus(self) -> int:
        """The series that Prometheus holds: those that odradek-prometheus makes for each client are more."""
        return self.series + self.clients * made_series()

    @property
    def bytes_per_push(self) -> float:
        """The mean; 0 without pushes."""
        return self.bytes_per_s / self.pushes_per_s if self.pushes_per_s else 0.0


@dataclass(slots=True)
class ScopeSeries:
    """The clients of a principal or an app."""

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
    """The load of the clients now, and after the change."""

    live: int = 0
    """All clients."""
    changed: int = 0
    """Those whose subscription becomes another."""
    now: Load = field(default_factory=Load)
    after: Load = field(default_factory=Load)
    principals: dict[str, ScopeSeries] = field(default_factory=dict)
    apps: dict[str, ScopeSeries] = field(default_factory=dict)
    bases: dict[Basis, BasisShare] = field(default_factory=lambda: {each: BasisShare() for each in Basis})
    exceeded: list[Exceeded] = field(default_factory=list)


def estimate(
    clients: Iterable[LiveClient],
    reader: StreamReader,
    before: SubscriptionPlans,
    after: SubscriptionPlans,
    budgets: SubscriptionBudgets,
) -> Generator[None, None, Estimate]:
    """Estimate a change of subscriptions, in steps of less than a millisecond.

    Args:
        clients: The live clients.
        reader: It has read their streams.
        before: The subscriptions in force.
        after: Those to come.
        budgets: The limits.
    """
    futures, peers, outlooks = Futures(reader), Peers(), []
    for number, client in enumerate(clients):
        before_plan, after_plan = before.plan(client.metadata), after.plan(client.metadata)
        future = futures.future(client, before_plan, after_plan)
        outlooks.append(Outlook(client, before_plan, after_plan, future))
        peers.add(outlooks[-1])
        if number % CLIENTS_A_STEP == 0:
            yield
    result, largest = Estimate(), Largest(budgets.client_series)
    for number, each in enumerate(outlooks):
        series = peers.guess(each) if each.future.series is None else each.future.series
        count(result, each, series, peers.series_bytes(each))
        largest.add(each, series)
        if number % CLIENTS_A_STEP == 0:
            yield
    result.exceeded = list(exceeded(result, largest, budgets))
    return result


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
    for scopes, name in ((result.principals, client.client.principal), (result.apps, client.client.app)):
        theirs = scopes.setdefault(name, ScopeSeries())
        theirs.clients += 1
        theirs.now += client.now
        theirs.after += series
    if client.before.metrics:
        result.now.add(client.now, client.now * series_bytes, client.before.push_interval_ms)
    if client.after.metrics:
        result.after.add(series, series * series_bytes, client.after.push_interval_ms)
    if client.before != client.after:
        result.changed += 1
        share = result.bases[client.future.basis]
        share.clients += 1
        share.series += series


def exceeded(result: Estimate, largest: Largest, budgets: SubscriptionBudgets) -> Iterator[Exceeded]:
    """The budgets that would be exceeded, and by more than now."""
    if budgets.series and result.after.series > max(budgets.series, result.now.series):
        yield Exceeded(ALL_KEY, "", budgets.series, result.after.series, 1)
    yield from exceeded_by_scopes(PRINCIPAL_KEY, budgets.principal_series, result.principals)
    yield from exceeded_by_scopes(APP_KEY, budgets.app_series, result.apps)
    if largest.clients:
        scope = uuid_text(largest.client_instance_id)
        yield Exceeded(CLIENT_KEY, scope, largest.limit, largest.series, largest.clients)


def exceeded_by_scopes(key: str, limit: int, scopes: Mapping[str, ScopeSeries]) -> Iterator[Exceeded]:
    """The budget of a principal or an app, if any would exceed it."""
    over = {name: each.after for name, each in scopes.items() if limit and each.after > max(limit, each.now)}
    if over:
        name = max(over, key=lambda name: over[name])
        yield Exceeded(key, name, limit, over[name], len(over))
