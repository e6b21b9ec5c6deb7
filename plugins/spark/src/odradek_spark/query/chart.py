"""Pictures as data: pages of panels with lines over time, bars, and spans.

Nothing here knows the tables. Values are in the metric's unit; the drawing chooses units for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

MAX_PANELS = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the points of a series, in the order of time."""

    label: str
    times: Sequence[datetime]
    values: Sequence[float]
    series: str = ""
    """Lines of the same series have one color; by default the label."""
    is_secondary: bool = False
    """Drawn dashed, and left out first: the mean beside a maximum."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold, as a horizontal line."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Span:
    """A time range, shaded in panels with lines, a bar in panels of spans."""

    label: str
    start: datetime
    end: datetime
    is_open: bool = False
    """It has not ended yet."""
    group: str = ""
    """Spans of one group have one color."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with lines over time."""

    title: str
    unit: str
    lines: Sequence[Line]
    limits: Sequence[Limit] = ()
    spans: Sequence[Span] = ()
    note: str = ""
    """A sentence beside the title."""


@dataclass(frozen=True, slots=True)
class SpanPanel:
    """One pair of axes with a row for each span."""

    title: str
    spans: Sequence[Span]
    groups: Sequence[str] = ()
    """The groups in the order of their colors; by default that of the spans."""


@dataclass(frozen=True, slots=True)
class Bars:
    """One pair of axes with bars, the first at the top."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]
    limits: Sequence[Limit] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One figure: panels below each other with a common time axis, or bars."""

    id: str
    """Part of the file's name if there are several pages."""
    title: str
    panels: Sequence[Panel | SpanPanel | Bars]
    subtitle: str = ""
    nothing: str = "no points in this time range"
    """Text if there are no panels."""
    between: tuple[datetime, datetime] | None = field(default=None)
    """The time range of the axis; None: that of the data."""
