"""The series of a client by name, as findings and tables ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from odradek.temporality.shape import Shape
from odradek_console.engine.client_entry import labels_of
from odradek_console.engine.series_history import COUNTER, NAN, Point, Row, SeriesHistory
from odradek_console.engine.texts import cut

Labels = tuple[tuple[str, str], ...]
KEPT_SHAPES: Final = 256
KEPT_COUNTS: Final = 100_000
RECENT_MS: Final = 1_800_000
"""Longer than any trouble looks back."""
LEAST_ROWS: Final = 8
"""For clients that push seldom."""


class Place(NamedTuple):
    """A series of a shape."""

    place: int
    labels: Labels


Places = Mapping[str, Sequence[Place]]


class ShapePlaces:
    """The places of series by name, for the shapes that were asked for last."""

    def __init__(self) -> None:
        self.kept: dict[int, Places] = {}

    def of(self, shape: Shape) -> Places:
        """The series of a shape by name."""
        found = self.kept.get(shape.number)
        if found is None:
            if len(self.kept) >= KEPT_SHAPES:
                del self.kept[next(iter(self.kept))]
            named: dict[str, list[Place]] = {}
            for place, identity in enumerate(shape.identities):
                named.setdefault(cut(identity.name), []).append(Place(place, labels_of(identity.attributes)))
            found = self.kept[shape.number] = named
        return found


class ShapeCounts:
    """The number of series of a shape whose names have some prefixes. Answers are kept."""

    def __init__(self) -> None:
        self.kept: dict[tuple[int, tuple[str, ...]], int] = {}

    def of(self, shape: Shape, prefixes: tuple[str, ...]) -> int:
        """The number of series of a shape whose names begin with one of the prefixes."""
        found = self.kept.get((shape.number, prefixes))
        if found is None:
            if len(self.kept) >= KEPT_COUNTS:
                self.kept.clear()
            found = sum(each.name.startswith(prefixes) for each in shape.identities)
            self.kept[shape.number, prefixes] = found
        return found


class ClientSeries:
    """The series of one client.

    Args:
        history: Its rows.
        places: The places of its shape.
    """

    def __init__(self, history: SeriesHistory, places: Places) -> None:
        self.history = history
        self.places = places

    @cached_property
    def recent(self) -> list[Row]:
        """The rows that findings look at."""
        return self.history.recent(RECENT_MS, LEAST_ROWS)

    def whole(self, name: str) -> list[Place]:
        """The series of a metric with the fewest labels. Those with more are parts of them."""
        found = self.places.get(name, ())
        if not found:
            return []
        fewest = min(len(each.labels) for each in found)
        return [each for each in found if len(each.labels) == fewest]

    def is_counter(self, place: Place) -> bool:
        """Whether its values are increases."""
        return self.history.roles[place.place] == COUNTER

    def latest(self, name: str, since_ms: int) -> list[float]:
        """The latest values of a metric's series since a time; of a counter those per second."""
        points = [self.last(place) for place in self.whole(name)]
        return [each.value for each in points if each is not None and each.time_ms >= since_ms]

    def last(self, place: Place) -> Point | None:
        """The latest point of a series; None if it has none."""
        is_counter, last_ms, increase = self.is_counter(place), 0, 0.0
        for level in self.history.levels:
            for time_ms, values in reversed(level):
                value = values[place.place] if place.place < len(values) else NAN
                if value != value:
                    continue
                if not is_counter:
                    return Point(time_ms, value)
                if last_ms > time_ms:
                    return Point(last_ms, increase / (last_ms - time_ms) * 1000)
                last_ms, increase = time_ms, value
        return None

    def fresh_ms(self, interval_ms: int) -> int:
        """A series whose last value is older than this is no longer pushed."""
        return self.last_ms - 2 * interval_ms

    @property
    def last_ms(self) -> int:
        """When the last push with values came; 0 if there is none."""
        return next((level[-1].time_ms for level in self.history.levels if level), 0)

    def values(self, place: Place) -> list[tuple[int, float]]:
        """The recent values of a series by time, as they are in the rows."""
        found = []
        for time_ms, values in self.recent:
            value = values[place.place] if place.place < len(values) else NAN
            if value == value:
                found.append((time_ms, value))
        return found
