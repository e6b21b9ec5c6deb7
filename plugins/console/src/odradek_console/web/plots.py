"""Plots of values by time: the geometry that ``plot.html`` draws as SVG.

Everything has a bound: a line has at most two points for each column of pixels, so a plot of ten thousand
points is as small as one of six hundred. A value that is not a finite number is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from odradek_console.text import short

Points = Sequence[tuple[int, float]]
"""Values by epoch milliseconds, the oldest first."""
WIDTH: Final = 400
HEIGHT: Final = 190
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 24
MOST_LINES: Final = 6
"""There are this many colors and dashes."""
TABLE_ROWS: Final = 20
LARGEST: Final = 1e300
"""Larger values are gaps: a range of them would overflow."""
GAP: Final = 2.5
"""Times the usual distance of points."""
VALUE_TICKS: Final = 4
TIME_TICKS: Final = 5
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
TIME_STEPS: Final = (
    *(each * SECOND_MS for each in (1, 2, 5, 10, 15, 30)),
    *(each * MINUTE_MS for each in (1, 2, 5, 10, 15, 30)),
    *(each * HOUR_MS for each in (1, 2, 3, 6, 12)),
    *(each * DAY_MS for each in (1, 2, 7, 30)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series of a plot."""

    name: str
    points: Points


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A value that does not change with time: a threshold, or the median of peers."""

    name: str
    value: float
    kind: str
    """The class of its line in the style sheet: ``threshold`` or ``peers``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark of an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A line as paths and dots; a dot is a point without neighbors."""

    name: str
    kind: str
    path: str
    dots: tuple[tuple[float, float], ...]
    times: str
    """Epoch seconds of the points, for the script that shows the values at the pointer."""
    values: str
    latest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLevel:
    """A horizontal line."""

    name: str
    kind: str
    y: float
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot as its template draws it."""

    id: str
    title: str
    unit: str
    description: str
    begin_s: float
    end_s: float
    lines: tuple[DrawnLine, ...]
    levels: tuple[DrawnLevel, ...]
    value_ticks: tuple[Tick, ...]
    time_ticks: tuple[Tick, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """The latest values by time, for a table: one value for each line."""
    left_out: int
    """Lines for which there was no room."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plot(
    name: str,
    title: str,
    unit: str,
    lines: Iterable[Line],
    begin_ms: int,
    end_ms: int,
    levels: Sequence[Level] = (),
) -> Plot:
    """Lay out a plot.

    Args:
        name: Distinguishes it on its page.
        title: Its heading.
        unit: The unit of the values.
        lines: The series; those after the sixth are left out.
        begin_ms: The left end of the time axis; points before it are not drawn.
        end_ms: The right end.
        levels: Horizontal lines.
    """
    end_ms = max(end_ms, begin_ms + SECOND_MS)
    given = [Line(name=each.name, points=inside(each.points, begin_ms, end_ms)) for each in lines]
    shown = given[:MOST_LINES]
    drawn_levels = [each for each in levels if is_value(each.value)]
    values = [value for each in shown for _, value in each.points if is_value(value)]
    ticks = value_ticks([*values, *(each.value for each in drawn_levels)])
    bottom, top = ticks[0], ticks[-1]

    def x(time_ms: int) -> float:
        return LEFT + (time_ms - begin_ms) / (end_ms - begin_ms) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM)

    return Plot(
        id=name,
        title=title,
        unit=unit,
        description=description(shown, unit, begin_ms, end_ms),
        begin_s=begin_ms / 1000,
        end_s=end_ms / 1000,
        lines=tuple(drawn(each, number, x, y) for number, each in enumerate(shown, start=1)),
        levels=tuple(
            DrawnLevel(name=each.name, kind=each.kind, y=round(y(each.value), 1), value=short(each.value))
            for each in drawn_levels
        ),
        value_ticks=tuple(Tick(at=round(y(each), 1), text=value_text(each)) for each in ticks),
        time_ticks=tuple(
            Tick(at=round(x(time_ms), 1), text=text) for time_ms, text in time_ticks(begin_ms, end_ms)
        ),
        rows=tuple(table_rows(shown)),
        left_out=len(given) - len(shown),
    )


def is_value(value: float) -> bool:
    """Whether a value can be drawn."""
    return abs(value) < LARGEST  # false for NaN


def inside(points: Points, begin_ms: int, end_ms: int) -> Points:
    return [each for each in points if begin_ms <= each[0] <= end_ms]


def with_gaps(points: Points, usual_ms: Callable[[int], float]) -> Points:
    """The points with a gap wherever two of them are much further apart than their neighbors are.

    Args:
        points: The points.
        usual_ms: The usual distance of a point at a time from the next one.
    """
    steps = [later - earlier for (earlier, _), (later, _) in pairwise(points)]
    found: list[tuple[int, float]] = []
    for place, (time_ms, value) in enumerate(points):
        found.append((time_ms, value))
        around = [steps[at] for at in (place - 1, place + 1) if 0 <= at < len(steps)]
        if place < len(steps) and steps[place] > GAP * max([usual_ms(time_ms), *around]):
            found.append((time_ms + 1, math.nan))
    return found


def drawn(line: Line, number: int, x: Callable[[int], float], y: Callable[[float], float]) -> DrawnLine:
    """The path of a line."""
    parts, dots, kept = [], [], []
    for segment in segments(line.points):
        fewer = thinned(segment, x)
        kept += fewer
        places = [(round(x(time_ms), 1), round(y(value), 1)) for time_ms, value in fewer]
        if len(places) == 1:
            dots += places
        else:
            parts.append("M" + "L".join(f"{across:g} {down:g}" for across, down in places))
    return DrawnLine(
        name=line.name,
        kind=f"s{number}",
        path="".join(parts),
        dots=tuple(dots),
        times=" ".join(f"{time_ms / 1000:.0f}" for time_ms, _ in kept),
        values=" ".join(short(value) for _, value in kept),
        latest=short(kept[-1][1]) if kept else "-",
    )


def segments(points: Points) -> Iterator[list[tuple[int, float]]]:
    """The points between gaps."""
    found: list[tuple[int, float]] = []
    for each in points:
        if is_value(each[1]):
            found.append(each)
        elif found:
            yield found
            found = []
    if found:
        yield found


def thinned(points: Points, x: Callable[[int], float]) -> list[tuple[int, float]]:
    """At most two points for each column of pixels: the smallest and the largest."""
    if len(points) <= WIDTH:
        return list(points)
    columns: dict[int, list[tuple[int, float]]] = {}
    for each in points:
        columns.setdefault(int(x(each[0])), []).append(each)
    found: list[tuple[int, float]] = []
    for column in columns.values():
        ends = {min(column, key=lambda each: each[1]), max(column, key=lambda each: each[1])}
        found += sorted(ends)
    return found


def value_ticks(values: Sequence[float]) -> list[float]:
    """The marks of the value axis: multiples of 1, 2 or 5 that contain zero and all values."""
    low, high = min([0.0, *values]), max([0.0, *values])
    if high - low < 1 / LARGEST:
        high = low + 1.0
    step = nice((high - low) / VALUE_TICKS)
    first, last = math.floor(low / step), math.ceil(high / step - 1e-9)
    return [step * each for each in range(first, max(last, first + 1) + 1)]


def nice(least: float) -> float:
    """The smallest number of 1, 2 or 5 times a power of ten that is at least this large."""
    power = math.floor(math.log10(least))
    unit = float(f"1e{power}")
    return next(each * unit for each in (1, 2, 5, 10) if each * unit >= least * (1 - 1e-9))


def value_text(value: float) -> str:
    """A mark of the value axis in few characters."""
    return f"{value:g}" if 0 < abs(value) < 0.01 else short(value)


def time_ticks(begin_ms: int, end_ms: int) -> list[tuple[int, str]]:
    """The marks of the time axis, in UTC: at full minutes, hours or days."""
    span_ms = end_ms - begin_ms
    step_ms = next((each for each in TIME_STEPS if span_ms <= each * TIME_TICKS), TIME_STEPS[-1])
    first = -(-begin_ms // step_ms) * step_ms
    return [(each, time_text(each, step_ms)) for each in range(first, end_ms + 1, step_ms)][: TIME_TICKS + 1]


def time_text(time_ms: int, step_ms: int) -> str:
    """A time of day; a date at midnight or for steps of days."""
    found = datetime.fromtimestamp(time_ms / 1000, UTC)
    if not time_ms % DAY_MS:
        return found.strftime("%b %d")
    return found.strftime("%H:%M:%S" if step_ms < MINUTE_MS else "%H:%M")


def table_rows(lines: Sequence[Line]) -> list[tuple[str, tuple[str, ...]]]:
    """The latest values by time, the newest first."""
    by_time: dict[int, dict[int, float]] = {}
    for place, line in enumerate(lines):
        for time_ms, value in [each for each in line.points if is_value(each[1])][-TABLE_ROWS:]:
            by_time.setdefault(time_ms // SECOND_MS, {})[place] = value
    return [
        (
            datetime.fromtimestamp(second, UTC).strftime("%H:%M:%S"),
            tuple(short(by_time[second].get(place)) for place in range(len(lines))),
        )
        for second in sorted(by_time, reverse=True)[:TABLE_ROWS]
    ]


def description(lines: Sequence[Line], unit: str, begin_ms: int, end_ms: int) -> str:
    """A sentence for those who do not see the plot."""
    begin, end = (datetime.fromtimestamp(each / 1000, UTC) for each in (begin_ms, end_ms))
    told = [f"From {begin:%b %d %H:%M} to {end:%b %d %H:%M} UTC, in {unit or 'numbers'}."]
    for line in lines:
        values = [value for _, value in line.points if is_value(value)]
        if values:
            low, high, latest = short(min(values)), short(max(values)), short(values[-1])
            told.append(f"{line.name}: from {low} to {high}, now {latest}.")
        else:
            told.append(f"{line.name}: no values.")
    return " ".join(told)
