"""The last hours of a client's series: rows of values, fewer the older they are.

A push is a row with a value for each series, in the order of the client's shape. A row of a counter has the
increase since the row before it, so rows can be united without loss. United rows of a gauge keep the largest
value of a maximum, the smallest of a minimum, and the latest of others.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from odradek.findings.client_metrics import client_metrics
from odradek.temporality.client_state import ClientState, Mark
from odradek.temporality.shape import Shape
from odradek.temporality.stream_key import Kind

EMPTY_BYTES: Final = 2_600
"""Approximate memory without rows, which is mostly that of the deques."""
SERIES_BYTES: Final = 9
ROW_BYTES: Final = 170
"""Approximate memory of a row without its values."""
VALUE_BYTES: Final = 4
NAN: Final = math.nan
COUNTER, LATEST, LARGEST, SMALLEST = b"clxn"
ROLES: Final = {"max": LARGEST, "min": SMALLEST}


class Level(NamedTuple):
    """One resolution."""

    step_ms: int
    """Rows of the same step are united."""
    span_ms: int
    """Rows older than this move to the next level, or end."""


LEVELS: Final = (Level(10_000, 900_000), Level(60_000, 7_200_000), Level(300_000, 43_200_000))


class Row(NamedTuple):
    """The values of all series at a time. NaN: no value."""

    time_ms: int
    values: array[float]


class Point(NamedTuple):
    """A value of a series: of a counter the increase per second since the point before."""

    time_ms: int
    value: float


class SeriesHistory:
    """The rows of one client instance."""

    __slots__ = ("held_bytes", "levels", "roles", "shape", "totals")

    def __init__(self) -> None:
        self.shape: Shape | None = None
        self.roles = b""
        self.totals = array("d")
        """The total of each counter at the last row."""
        self.levels: tuple[deque[Row], ...] = tuple(deque() for _ in LEVELS)
        self.held_bytes = EMPTY_BYTES
        """Approximate memory."""

    def rows(self) -> list[Row]:
        """All rows, the oldest first."""
        return [row for level in reversed(self.levels) for row in level]

    def recent(self, span_ms: int, at_least: int) -> list[Row]:
        """The rows of the last time, the oldest first; more if they are fewer than wanted."""
        found: list[Row] = []
        for level in self.levels:
            for row in reversed(level):
                if len(found) >= at_least and row.time_ms < found[0].time_ms - span_ms:
                    return found[::-1]
                found.append(row)
        return found[::-1]

    def add(self, time_ms: int, client: ClientState, scale: float = 1.0) -> None:
        """Add the values of a push.

        Args:
            time_ms: When the host received it.
            client: The client with the totals of the push.
            scale: Shortens all levels.
        """
        if self.shape is not client.shape:
            self.take_shape(client.shape)
        values, second = array("f", [NAN]) * len(self.roles), time_ms // 1000
        amounts, seen, totals = client.amounts, client.seen, self.totals
        for place, role in enumerate(self.roles):
            if seen[place] != second:
                continue
            if role == COUNTER:
                total = amounts[2 * place] + amounts[2 * place + 1]
                before = totals[place]
                if before != before:
                    # All of a delta is new. A total may be the client's whole life.
                    before = total if client.marks.get(place, 0) & Mark.CUMULATIVE else 0.0
                values[place], totals[place] = total - before, total
            else:
                values[place] = amounts[2 * place]
        self.put(0, Row(time_ms, values))
        self.age(time_ms, scale)

    def take_shape(self, shape: Shape) -> None:
        """Follow the client to another shape."""
        old = () if self.shape is None else self.shape.keys
        places = {key: place for place, key in enumerate(old)}
        moved = [places.get(key, -1) for key in shape.keys]
        if moved[: len(old)] != list(range(len(old))):
            for level in self.levels:
                rows = [Row(row.time_ms, reordered(row.values, moved)) for row in level]
                level.clear()
                level.extend(rows)
            self.held_bytes += VALUE_BYTES * (len(moved) - len(old)) * sum(map(len, self.levels))
        self.held_bytes += SERIES_BYTES * (len(moved) - len(old))
        self.totals = array("d", [NAN if place < 0 else self.totals[place] for place in moved])
        self.shape, self.roles = shape, bytes(role_of(shape, place) for place in range(len(shape.keys)))

    def put(self, index: int, row: Row) -> None:
        """Add a row to a level, united with its last one if that belongs to the same step."""
        level, step_ms = self.levels[index], LEVELS[index].step_ms
        if level and level[-1].time_ms // step_ms == row.time_ms // step_ms:
            older = level.pop()
            self.held_bytes -= row_bytes(older)
            row = self.united(older, row)
        level.append(row)
        self.held_bytes += row_bytes(row)

    def united(self, older: Row, newer: Row) -> Row:
        values = newer.values
        for place, before in enumerate(older.values):
            if before == before:
                values[place] = united(self.roles[place], before, values[place])
        return Row(newer.time_ms, values)

    def age(self, now_ms: int, scale: float = 1.0) -> None:
        """Move old rows to the next level, and forget the oldest."""
        for index, level in enumerate(self.levels):
            oldest_ms = now_ms - LEVELS[index].span_ms * scale
            while level and level[0].time_ms < oldest_ms:
                row = level.popleft()
                self.held_bytes -= row_bytes(row)
                if index + 1 < len(LEVELS):
                    self.put(index + 1, row)

    def points(self, place: int, since_ms: int = 0, rows: Sequence[Row] | None = None) -> Iterator[Point]:
        """The points of the series at a place of the shape, the oldest first; of all rows or of some."""
        is_counter, before_ms, waiting = self.roles[place] == COUNTER, 0, 0.0
        for time_ms, values in self.rows() if rows is None else rows:
            value = values[place] if place < len(values) else NAN
            if value != value:
                continue
            if is_counter:
                seconds = (time_ms - before_ms) / 1000
                if before_ms and seconds > 0 and time_ms >= since_ms:
                    yield Point(time_ms, (value + waiting) / seconds)
                before_ms, waiting = time_ms, 0.0
            elif time_ms >= since_ms:
                yield Point(time_ms, value)


def row_bytes(row: Row) -> int:
    return ROW_BYTES + VALUE_BYTES * len(row.values)


def reordered(values: array[float], places: list[int]) -> array[float]:
    return array("f", [values[place] if 0 <= place < len(values) else NAN for place in places])


def united(role: int, older: float, newer: float) -> float:
    """The value of two rows that become one; the older one is no NaN."""
    if newer != newer:
        return older
    if role == COUNTER:
        return older + newer
    if role == LARGEST:
        return max(older, newer)
    return min(older, newer) if role == SMALLEST else newer


def role_of(shape: Shape, place: int) -> int:
    """The role of a series, which decides how its values are united."""
    identity = shape.known.identity(shape.keys[place])
    if identity.kind in (Kind.COUNTER, Kind.HISTOGRAM, Kind.EXPONENTIAL_HISTOGRAM):
        return COUNTER
    known = client_metrics().get(identity.name)
    return ROLES.get(known.aggregate, LATEST) if known is not None else LATEST
