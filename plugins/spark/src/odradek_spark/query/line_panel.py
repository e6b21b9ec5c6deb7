"""Draws lines over time, with labels at their ends, thresholds, and shaded times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from odradek_spark.query.axes import (
    GREY,
    SECOND_LINE,
    SECOND_LINE_PT,
    TITLE_CHARS,
    TROUBLE,
    axis_unit,
    colors_of,
    drawn,
    halo,
    near,
    say_nothing,
    tidy,
)
from odradek_spark.query.chart import Limit, Line, Panel, Span
from odradek_spark.query.localtime import local
from odradek_spark.query.units import Scale, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MAX_LINES = 6
"""Limit of lines in a panel; more are indistinguishable."""
LINE_LABEL_CHARS = 30
BESIDE_CHARS = 70
"""The length of a title with what stands beside it; long labels may narrow the panel."""
LINE_CHARS = 130
"""The length of a small text across a panel."""
SHADE: Final = "#FBE3D6"
LABEL_GAP = 0.095
"""The least distance of labels, as a share of a panel's height."""
GAP_INTERVALS = 5.0
"""A line breaks after this many times the usual distance of its points: the client was silent. Pushes of
throttled clients are late."""
LEAST_GAP: Final = timedelta(minutes=1)
"""A line never breaks for less."""


def draw_lines(axis: Axes, panel: Panel) -> list[str]:
    """Draw lines with their labels at the right end, limits, and shaded spans."""
    lines, left_out = chosen(panel)
    values = [value for line in lines for value in line.values if math.isfinite(value)]
    limits = [limit for limit in panel.limits if near(limit, values)]
    scale = scale_of(panel.unit, [*values, *(limit.value for limit in limits)])
    say_title(axis, panel, [limit for limit in panel.limits if limit not in limits])
    axis.set_ylabel(axis_unit(scale))
    shade(axis, panel.spans)
    colors = colors_of(line.series or line.label for line in lines)
    for line in lines:
        times, scaled = broken(line, scale)
        axis.plot(
            times,  # type: ignore[arg-type]
            scaled,
            color=colors[line.series or line.label],
            linestyle=style_of(line),
            linewidth=1.1 if line.is_secondary else 1.8,
            marker="." if len(line.values) < 60 else "",
            label=line.label,
        )
    if not values:
        say_nothing(axis, "no points")
        return left_out
    if not any(values):
        axis.text(0.5, 0.5, "always 0", ha="center", transform=axis.transAxes, color=GREY)
    bound(axis, [each / scale.size for each in (*values, *(limit.value for limit in limits))])
    for limit in limits:
        draw_limit(axis, limit, scale)
    if any(line.label for line in lines):
        label_ends(axis, lines, scale, colors)
    tidy(axis)
    return left_out


def shade(axis: Axes, spans: Sequence[Span]) -> None:
    """Shade time ranges; each label stands once, below the one before."""
    told: list[str] = []
    for span in spans:
        axis.axvspan(local(span.start), local(span.end), color=SHADE, linewidth=0)  # type: ignore[arg-type]
        if span.label and span.label not in told:
            told.append(span.label)
            axis.annotate(
                drawn(span.label),
                (local(span.start), 1.0),
                xytext=(3, -10 * len(told)),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                fontsize=8,
                color=TROUBLE,
                path_effects=halo(),
            )


def chosen(panel: Panel) -> tuple[list[Line], list[str]]:
    """The lines to draw: those with the largest values; the secondary ones are left out first."""
    lines = list(panel.lines)
    if len(lines) <= MAX_LINES:
        return lines, []
    largest = sorted(
        lines,
        key=lambda line: (line.is_secondary, -max(map(abs, filter(math.isfinite, line.values)), default=0)),
    )
    kept = {id(line) for line in largest[:MAX_LINES]}
    more = len(lines) - MAX_LINES
    return (
        [line for line in lines if id(line) in kept],
        [f"{panel.title}: {more} more lines are not drawn; drawn are those with the largest values"],
    )


def style_of(line: Line) -> str:
    return "--" if line.is_secondary else "-"


def say_title(axis: Axes, panel: Panel, far: Sequence[Limit]) -> None:
    """The title, and beside or below it what the panel does not show: limits that are far away."""
    axis.set_title(drawn(panel.title, TITLE_CHARS), fontsize=10, loc="left")
    beside = "; ".join([*([panel.note] if panel.note else []), *(limit.label for limit in far)])
    if len(panel.title) + len(beside) <= BESIDE_CHARS:
        axis.set_title(beside, fontsize=8, loc="right", color=TROUBLE)
        return
    axis.set_title(drawn(panel.title, TITLE_CHARS), fontsize=10, loc="left", pad=SECOND_LINE_PT + 6)
    axis.annotate(
        drawn(beside, LINE_CHARS),
        (0.0, 1.0),
        xytext=(0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8,
        color=TROUBLE,
        gid=SECOND_LINE,
    )


def draw_limit(axis: Axes, limit: Limit, scale: Scale) -> None:
    """A horizontal line with its label above."""
    axis.axhline(limit.value / scale.size, color=TROUBLE, linestyle=":", linewidth=1.4)
    axis.annotate(
        drawn(limit.label, 90),
        (0.0, limit.value / scale.size),
        xytext=(4, 2),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        fontsize=8,
        color=TROUBLE,
        path_effects=halo(),
    )


def bound(axis: Axes, values: Sequence[float]) -> None:
    """Begin the axis at zero, and leave room at the top."""
    low, high = min(0.0, *values), max(0.0, *values)
    if low == high:
        high = 1.0
    axis.set_ylim(low * 1.12, high * 1.18)


def label_ends(axis: Axes, lines: Sequence[Line], scale: Scale, colors: Mapping[str, str]) -> None:
    """Write each line's label at its right end; labels do not overlap, and the larger lines' are above."""
    low, high = axis.get_ylim()
    lines = sorted((line for line in lines if line.values), key=lambda line: max(line.values))
    ends = [round((line.values[-1] / scale.size - low) / (high - low), 1) for line in lines]
    for line, place in zip(lines, spread(ends), strict=True):
        color = colors[line.series or line.label]
        axis.plot(
            (1.008, 1.03),
            (place, place),
            transform=axis.transAxes,
            color=color,
            linestyle=style_of(line),
            clip_on=False,
            linewidth=1.6,
        )
        label = drawn(line.label, LINE_LABEL_CHARS)
        axis.text(1.036, place, label, transform=axis.transAxes, va="center", fontsize=8, color=color)


def spread(places: Sequence[float]) -> list[float]:
    """Places between 0 and 1 that keep their order and `LABEL_GAP`, near the given ones."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved: list[float] = []
    for index in order:
        moved.append(max(places[index], moved[-1] + LABEL_GAP if moved else 0.0))
    for index in range(len(moved) - 1, -1, -1):
        moved[index] = min(moved[index], moved[index + 1] - LABEL_GAP if index + 1 < len(moved) else 1.0)
    found = list(places)
    for rank, index in enumerate(order):
        found[index] = moved[rank]
    return found


def broken(line: Line, scale: Scale) -> tuple[list[datetime], list[float]]:
    """The points of a line in the scale's unit, with a break where the client was silent."""
    gaps = [later - earlier for earlier, later in pairwise(line.times)]
    usual = timedelta(seconds=median(gap.total_seconds() for gap in gaps)) if gaps else timedelta()
    times, values = [], []
    for index, (at, value) in enumerate(zip(line.times, line.values, strict=True)):
        if index and gaps[index - 1] > max(GAP_INTERVALS * usual, LEAST_GAP):
            times.append(local(line.times[index - 1] + usual))
            values.append(math.nan)
        times.append(local(at))
        values.append(value / scale.size)
    return times, values
