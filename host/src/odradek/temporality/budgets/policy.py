"""The policy of the budgets: the route of a stream that would be one series too many.

It is pure: numbers in, routes out. It decides when a stream is created, never for a point. Streams that exist
are never refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from odradek.settings import LONG, Choice, Whole, declare
from odradek.temporality.budgets.other_streams import REDUCIBLE
from odradek.temporality.budgets.series_counts import SeriesCount, SeriesCounts
from odradek.temporality.stream_key import StreamKey

REDUCED_FROM: Final = 0.9
"""From this share of its budget on, a client's new streams lose a label."""
RELEASED_BELOW: Final = 0.9
"""Below this share of a budget for long enough, new clients have their own series again."""
OTHER_SERIES: Final = 2_000
"""Streams of one ``other``. The reference of client metrics has a fifth of that."""
MAX_EXCEEDED: Final = 1_000
"""Limit of budgets and metrics that are remembered for the log."""


class Level(IntEnum):
    """The destination of a stream. The numbers are in stored states."""

    OWN = 0
    APP = 1
    """The ``other`` of its app."""
    PRINCIPAL = 2
    ALL = 3
    REFUSED = 4


class Route(NamedTuple):
    """The fate of a new stream."""

    level: Level
    labels: frozenset[str] | None = frozenset()
    """At the level `OWN`, the labels that the stream loses; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """The budgets; 0 for none. A destination has them in its table."""

    # fmt: off
    series: int = declare(
        "budget.series", Whole(LONG), 1_000_000,
        "Limit of series of all clients; `0`, as in the other rows: no limit.", unit="series",
    )
    principal_series: int = declare(
        "budget.principal.series", Whole(LONG), 100_000, "Limit for the clients of one principal.",
        unit="series",
    )
    app_series: int = declare(
        "budget.app.series", Whole(LONG), 20_000, "Limit for one app of a principal.", unit="series",
    )
    client_series: int = declare(
        "budget.client.series", Whole(LONG), 2_000, "Limit for one client instance.", unit="series",
    )
    label_values: int = declare(
        "budget.label.values", Whole(LONG), 10_000,
        "Limit of values that a label of data points has in one metric.", unit="values",
    )
    refuse: bool = declare(
        "budget.over", Choice({"fold": False, "refuse": True}), False,
        "Whether what is over budget is added to `other`, or left out (`refuse`).",
    )
    # fmt: on

    def share(self, parts: int) -> BudgetLimits:
        """The budgets of one of several engines, whose clients differ."""
        if parts == 1:
            return self
        series, principal, app = (
            -(-limit // parts) for limit in (self.series, self.principal_series, self.app_series)
        )
        return replace(self, series=series, principal_series=principal, app_series=app)


class Budget:
    """The budget of an app, a principal or all, and whether new clients go to its ``other``."""

    __slots__ = ("below_since_ms", "count", "is_folding", "key", "limit")

    def __init__(self, key: tuple[str, ...], limit: int, count: SeriesCount) -> None:
        self.key = key
        """Its kind (``app``, ``principal`` or ``all``), then the names of the scope."""
        self.limit = limit
        self.count = count
        self.is_folding = False
        self.below_since_ms = 0
        """The time since which the series are below `RELEASED_BELOW` of the limit; 0 if they are not."""

    def lacks(self, series: int) -> bool:
        """Whether so many new series would exceed the budget."""
        return bool(self.limit) and self.count.series + series > self.limit

    @property
    def ratio(self) -> float:
        """The share of the budget that is used; 0 without a limit."""
        return self.count.series / self.limit if self.limit else 0.0

    def changed(self, now_ms: int) -> None:
        """Note that the number of series has changed."""
        if self.is_folding:
            is_below = self.count.series < RELEASED_BELOW * self.limit
            self.below_since_ms = (self.below_since_ms or now_ms) if is_below else 0

    def admits_client(self, series: int, now_ms: int, patience_ms: int) -> bool:
        """Whether a new client may have its own series: after too many, only if others have left."""
        if self.is_folding and self.below_since_ms and now_ms - self.below_since_ms >= patience_ms:
            self.is_folding, self.below_since_ms = False, 0
        if self.lacks(series):
            self.is_folding = True
            self.changed(now_ms)
        return not self.is_folding


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A budget was exceeded, to be logged once an hour."""

    budget: str
    scope: str
    metric: str
    """Empty if a client as a whole is over budget."""
    route: Route


@dataclass(slots=True)
class BudgetCounts:
    """Streams that went elsewhere, by budget."""

    folded: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)


class SeriesBudget:
    """Decides about new streams, and tells which budgets were exceeded."""

    def __init__(self, limits: BudgetLimits, series: SeriesCounts) -> None:
        self.limits = limits
        self.series = series
        self.counts = BudgetCounts()
        self.exceeded: dict[tuple[str, str], Exceeded] = {}
        """By budget and metric, since `take_exceeded`."""
        self.reported: dict[tuple[str, str], int] = {}
        """The hour of the last report, by budget and metric."""

    def admit_client(self, budgets: Sequence[Budget], series: int, now_ms: int, patience_ms: int) -> Level:
        """Decide whether a new client has its own series.

        Args:
            budgets: Those of its app, its principal and all.
            series: The number of series that it would have.
            now_ms: Epoch milliseconds.
            patience_ms: The time for which a budget must have had room again.

        Returns:
            `OWN`, or the level of the widest of the exceeded budgets, where all of its streams go.
        """
        series = min(series, self.limits.client_series or series)
        level = Level.OWN
        for own_level, budget in zip((Level.APP, Level.PRINCIPAL, Level.ALL), budgets, strict=True):
            if not budget.admits_client(series, now_ms, patience_ms):
                level = own_level
        return self.refused_or(level, budgets, "", series) if level else level

    def admit(self, key: StreamKey, series: int, budgets: Sequence[Budget], client_series: int) -> Route:
        """Decide about a new stream of a client that has its own series.

        Args:
            key: The stream.
            series: Its series: a histogram has several.
            budgets: Of the client's app, its principal and all.
            client_series: Series that the client has.
        """
        route, budget = self.within_client(key, series, client_series)
        level = self.level(budgets, series)
        if level:
            return Route(self.refused_or(level, budgets, self.series.name_of(key), 1))
        if budget:
            if self.limits.refuse:
                route = Route(Level.REFUSED)
            self.note(budget, "", self.series.name_of(key), 1, route)
        return route

    def has_room(self, streams: int, series: int, budgets: Sequence[Budget], client_series: int) -> bool:
        """Whether new streams of a client exceed no budget, whatever they are.

        Args:
            streams: Their number.
            series: The number of their series.
            budgets: Of the client's app, its principal and all.
            client_series: Series that the client has.
        """
        limit = self.limits.client_series * (1 if self.limits.refuse else REDUCED_FROM)
        if (limit and client_series + series > limit) or self.level(budgets, series):
            return False
        values = self.limits.label_values
        return not values or self.series.has_label_room(streams, values)

    def level(self, budgets: Sequence[Budget], series: int) -> Level:
        """The widest budget that so many series would exceed."""
        for level, budget in zip((Level.ALL, Level.PRINCIPAL, Level.APP), reversed(budgets), strict=True):
            if budget.lacks(series):
                return level
        return Level.OWN

    def within_client(self, key: StreamKey, series: int, client_series: int) -> tuple[Route, str]:
        """The route by the budgets of the client and its labels' values, and the name of an exceeded one."""
        limit = self.limits.client_series
        if limit and client_series + series > limit:
            # A stream without labels cannot be reduced, and reduced ones are bounded too.
            can_reduce = self.series.pairs_of(key) and client_series < limit + OTHER_SERIES
            return (Route(Level.OWN, None) if can_reduce else Route(Level.APP)), "client"
        full = self.full_labels(key)
        if full:
            return Route(Level.OWN, full), "label"
        if limit and client_series + series > REDUCED_FROM * limit and not self.limits.refuse:
            widest = self.widest(key)
            if widest:
                return Route(Level.OWN, frozenset((widest,))), "client"
        return Route(Level.OWN), ""

    def full_labels(self, key: StreamKey) -> frozenset[str]:
        """The labels of a stream that may not have one more value."""
        limit = self.limits.label_values
        metric = self.series.metrics.get(self.series.name_of(key))
        if not limit or metric is None:
            return frozenset()
        full = []
        for name, value in self.series.pairs_of(key):
            label = metric.labels.get(name)
            if label is not None and len(label.values) >= limit and value not in label.values:
                full.append(name)
        return frozenset(full)

    def widest(self, key: StreamKey) -> str:
        """The label with most values that a stream may lose; empty if there is none."""
        metric = self.series.metrics.get(self.series.name_of(key))
        names = [name for name, _ in self.series.pairs_of(key) if name in REDUCIBLE]
        if metric is None:
            return names[0] if names else ""
        sizes = {name: len(label.values) for name, label in metric.labels.items()}
        return max(names, key=lambda name: sizes.get(name, 0), default="")

    def refused_or(self, level: Level, budgets: Sequence[Budget], metric: str, streams: int) -> Level:
        """Note that streams exceed the budget of a level; return the level where they go."""
        budget = budgets[level - 1]
        if self.limits.refuse:
            level = Level.REFUSED
        self.note(budget.key[0], "/".join(budget.key[1:]), metric, streams, Route(level))
        return level

    def note(self, budget: str, scope: str, metric: str, streams: int, route: Route) -> None:
        """Count streams that are not shown as they are, and keep the first one of each hour for the log."""
        counts = self.counts.refused if route.level == Level.REFUSED else self.counts.folded
        counts[budget] = counts.get(budget, 0) + streams
        key, hour = (budget, metric), self.series.hour
        if self.reported.get(key) == hour or len(self.exceeded) >= MAX_EXCEEDED:
            return
        if len(self.reported) >= MAX_EXCEEDED:
            self.reported.clear()
        self.reported[key] = hour
        self.exceeded[key] = Exceeded(budget, scope, metric, route)

    def take_exceeded(self) -> list[Exceeded]:
        """The budgets that were exceeded since the last call, each with a metric once an hour."""
        found = list(self.exceeded.values())
        self.exceeded.clear()
        return found
