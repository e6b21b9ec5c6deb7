"""The client instances whose series are counted, and the ``other`` instances that have the series of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from odradek.temporality.budgets.other_streams import OTHER
from odradek.temporality.budgets.policy import Budget, Level
from odradek.temporality.budgets.series_counts import ClientFacts, SeriesCount, SeriesCounts
from odradek.temporality.client_state import NO_ROUTE, ClientState
from odradek.temporality.histogram import HistogramState
from odradek.temporality.shape import Shape
from odradek.temporality.stream_key import StreamKey

OTHER_PREFIX: Final = b"odradek.other\0"
"""Instance ids of clients have 16 bytes, these have more."""
Pairs = list[tuple[int, int]]
"""Positions of streams, each with the position of the stream that it is part of."""


@dataclass(slots=True)
class Part:
    """The streams of a client that are part of the streams of one other instance, or of its own."""

    other: Other | None
    """None for the client's own streams."""
    epoch: int
    sums: Pairs = field(default_factory=list)
    gauges: Pairs = field(default_factory=list)
    distributions: Pairs = field(default_factory=list)

    @property
    def is_current(self) -> bool:
        return self.other is None or self.other.epoch == self.epoch


class Member:
    """A live client instance."""

    __slots__ = (
        "budgets",
        "client",
        "counts",
        "ended",
        "facts",
        "hidden",
        "live",
        "parts",
        "placed",
        "places",
        "shape",
        "weights",
    )

    def __init__(
        self,
        client: ClientState,
        facts: ClientFacts,
        counts: Sequence[SeriesCount],
        budgets: Sequence[Budget],
    ) -> None:
        self.client = client
        self.facts = facts
        self.counts = counts
        """The counts of its app, its principal, all, and its software."""
        self.budgets = budgets
        """The budgets of its app, its principal, and all."""
        self.live = 0
        """The number of its live series."""
        self.shape: Shape | None = None
        """The shape whose streams were counted."""
        self.weights: dict[StreamKey, int] = {}
        """The series of streams that have several."""
        self.hidden: set[StreamKey] = set()
        """Streams that are part of others, or refused."""
        self.ended: set[StreamKey] = set()
        """Streams that are not counted, because they had no point for long."""
        self.placed: Shape | None = None
        self.places: dict[StreamKey, int] = {}
        """The position of each stream of the shape `placed`, made when it is needed."""
        self.parts: list[Part] | None = None
        """The streams that its hidden streams are part of; None until `Others.parts` finds them."""

    def add(self, series: int, hour: int, now_ms: int) -> None:
        """Count new series."""
        self.live += series
        for count in self.counts:
            count.add(series, hour)
        for budget in self.budgets:
            budget.changed(now_ms)

    def remove(self, series: int, now_ms: int) -> None:
        """Count series that have ended."""
        self.live -= series
        for count in self.counts:
            count.series -= series
        for budget in self.budgets:
            budget.changed(now_ms)

    def count(self, keys: Sequence[StreamKey], series: SeriesCounts, now_ms: int) -> None:
        """Count new streams as live."""
        weights = self.weights
        for key in keys:
            series.add(key, weights.get(key, 1) if weights else 1)
        total = sum([weights.get(key, 1) for key in keys]) if weights else len(keys)
        self.add(total, series.hour, now_ms)

    def uncount(self, keys: Sequence[StreamKey], series: SeriesCounts, now_ms: int) -> None:
        """Count streams as no longer live."""
        total = 0
        for key in keys:
            weight = self.weights.get(key, 1)
            series.remove(key, weight)
            total += weight
        self.remove(total, now_ms)

    def counted(self) -> Iterator[StreamKey]:
        if self.shape is None or self.client.folded:
            return iter(())
        if not (self.hidden or self.ended):
            return iter(self.shape.keys)
        return (key for key in self.shape.keys if key not in self.hidden and key not in self.ended)

    def position(self, key: StreamKey) -> int | None:
        """The position of a stream in the client; None if it has no such stream."""
        shape, placed = self.client.shape, self.placed
        if placed is not shape:
            known = 0 if placed is None else len(placed.keys)
            if placed is not None and shape.keys[:known] != placed.keys:
                known = 0
                self.places.clear()
            for place in range(known, len(shape.keys)):
                self.places[shape.keys[place]] = place
            self.placed = shape
        return self.places.get(key)

    def weight(self, position: int) -> int:
        """The series of a stream: a histogram has one for each bucket, its sum and its count."""
        found = self.client.distributions.get(position)
        return len(found.counts) + 2 if isinstance(found, HistogramState) else 1


class Other(Member):
    """An instance that has the series of many: ``other`` of an app, of a principal, or of all."""

    __slots__ = ("epoch", "instance_id", "members", "refreshed_ms")

    def __init__(
        self,
        instance_id: bytes,
        client: ClientState,
        facts: ClientFacts,
        counts: Sequence[SeriesCount],
        budgets: Sequence[Budget],
    ) -> None:
        super().__init__(client, facts, counts, budgets)
        self.instance_id = instance_id
        self.epoch = 0
        """Raised when its streams have moved."""
        self.members: dict[bytes, Member] = {}
        """The live instances that have streams in it."""
        self.refreshed_ms = 0
        """When its gauges were computed."""


def other_id(level: Level, facts: ClientFacts) -> bytes:
    """The instance id of ``other`` of a client's app, principal, or of all."""
    principal = facts.principal if level < Level.ALL else ""
    app = facts.app if level == Level.APP else ""
    return OTHER_PREFIX + f"{int(level)}\0{principal}\0{app}".encode()


def facts_of_other(instance_id: bytes) -> ClientFacts | None:
    """The names by which an ``other`` instance is counted; None for a client's instance."""
    if not is_other(instance_id):
        return None
    level, principal, app = instance_id[len(OTHER_PREFIX) :].decode(errors="replace").split("\0", 2)
    return ClientFacts(
        app=app if int(level) == Level.APP else OTHER,
        principal=principal if int(level) < Level.ALL else OTHER,
        software=OTHER,
        example=OTHER,
    )


def is_other(instance_id: bytes) -> bool:
    """Whether this is an ``other`` instance, which has the series of many clients."""
    return instance_id.startswith(OTHER_PREFIX)


def route_of(level: Level) -> int:
    """The stored number of a route to ``other``, or of a refused stream."""
    return NO_ROUTE - level


def level_of(route: int) -> Level:
    """The level of a stored route below `NO_ROUTE`."""
    return Level(NO_ROUTE - route)
