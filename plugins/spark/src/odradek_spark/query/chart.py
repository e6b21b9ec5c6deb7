"""Draws query results: lines over time, or bars, with labeled axes and units."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odradek_spark.query.views import PREFIX

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PANELS = 6
MAX_LINES = 8
"""Limit of lines in a panel; more are indistinguishable."""
MAX_BARS = 40
WIDTH_IN = 10.0
PANEL_IN = 2.8
LABEL_CHARS = 60
UNITS = (
    (".time.ns.", "ns"),
    ("ratio", "ratio"),
    (".rate", "per s"),
    ("latency", "ms"),
    (".time.", "ms"),
    ("bytes", "bytes"),
    ("size", "bytes"),
)
"""Parts of metric names, and their units in Kafka's documentation, for clients that send no unit."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: the points of a series."""

    label: str
    times: Sequence[Any]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with lines over time."""

    title: str
    unit: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars with their labels and lengths."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]


def unit_of(name: str, unit: str | None) -> str:
    """The unit of a metric: the client's, or one derived from the name."""
    return unit or next((found for part, found in UNITS if part in f".{name}."), "value")


def series_panels(rows: pa.Table) -> list[Panel]:
    """Panels for rows of `questions.series`: one per metric, with a line for each instance and its labels."""
    panels: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows.to_pylist():
        label = f"{row['client_id']} {row['client_instance_id'][:6]} {labels(row['attrs'])}".strip()
        panels.setdefault(row["name"], {}).setdefault(label, []).append(row)
    return [
        Panel(
            name.removeprefix(PREFIX),
            unit_of(name, next(iter(found.values()))[0]["unit"]),
            [
                Line(label, [row["ts"] for row in points], [row["number"] for row in points])
                for label, points in found.items()
            ],
        )
        for name, found in panels.items()
    ]


def throttle_panels(rows: pa.Table) -> list[Panel]:
    """The panel for rows of `questions.throttled`, with a line for each instance."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        lines.setdefault(f"{row['client_id']} {row['client_instance_id'][:6]}", []).append(row)
    return [
        Panel(
            "throttled minutes",
            "ms",
            [
                Line(label, [row["minute"] for row in found], [row["throttle_ms"] for row in found])
                for label, found in lines.items()
            ],
        )
    ]


def bars(rows: pa.Table, names: Sequence[str], value: str, title: str, unit: str) -> Bars:
    """A bar for each row, labeled with some of its columns."""
    found = [
        (" ".join("-" if row[name] is None else str(row[name]) for name in names), float(row[value] or 0))
        for row in rows.to_pylist()
    ]
    return Bars(title, unit, found)


def labels(attrs: str | None) -> str:
    """The labels of a point as text; empty if there are none."""
    return "" if attrs in (None, "", "{}") else str(attrs)


def draw(chart: Sequence[Panel] | Bars, path: Path) -> list[str]:
    """Write a PNG file.

    Returns:
        A line about each part that did not fit.

    Raises:
        OSError: The file is not writable.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    with mpl.rc_context({"text.parse_math": False}), warnings.catch_warnings():  # names may have any sign
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure, left_out = bar_figure(chart) if isinstance(chart, Bars) else line_figure(chart)
        figure.savefig(path, dpi=120, format="png")
    return left_out


def drawn(label: str) -> str:
    """A shortened label. The space hides a leading ``_``, which would keep matplotlib from showing it."""
    return f" {label}"[:LABEL_CHARS] if label.startswith("_") else label[:LABEL_CHARS]


def line_figure(panels: Sequence[Panel]) -> tuple[Figure, list[str]]:
    """Panels below each other, with a common time axis."""
    from matplotlib.figure import Figure

    shown = panels[:MAX_PANELS]
    figure = Figure(figsize=(WIDTH_IN, PANEL_IN * max(1, len(shown))), layout="constrained")
    axes = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
    left_out = [f"{panel.title} is not drawn" for panel in panels[MAX_PANELS:]]
    for axis, panel in zip(axes, shown, strict=False):
        draw_lines(axis, panel)
        if len(panel.lines) > MAX_LINES:
            left_out.append(f"{panel.title}: {len(panel.lines) - MAX_LINES} more lines are not drawn")
    axes[-1].set_xlabel("time (UTC)")
    return figure, left_out


def draw_lines(axis: Axes, panel: Panel) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for line in panel.lines[:MAX_LINES]:
        axis.plot(line.times, line.values, marker=".", linewidth=1.2, label=drawn(line.label))
    axis.set_title(panel.title, fontsize=10, loc="left")
    axis.set_ylabel(panel.unit)
    axis.grid(alpha=0.3)
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    if panel.lines:
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axis.text(0.5, 0.5, "no points", ha="center", va="center", transform=axis.transAxes)


def bar_figure(chart: Bars) -> tuple[Figure, list[str]]:
    """Horizontal bars, so that their labels are readable; the first is at the top."""
    from matplotlib.figure import Figure

    shown, more = chart.bars[:MAX_BARS], len(chart.bars) - MAX_BARS
    figure = Figure(figsize=(WIDTH_IN, 1.2 + 0.35 * max(1, len(shown))), layout="constrained")
    axis = figure.subplots()
    found = axis.barh(range(len(shown)), [length for _, length in shown])
    axis.bar_label(found, fmt="%.4g", padding=3, fontsize=8)
    axis.set_yticks(range(len(shown)), [drawn(label) for label, _ in shown])
    axis.invert_yaxis()
    axis.set_title(chart.title, fontsize=10, loc="left")
    axis.set_xlabel(chart.unit)
    axis.margins(x=0.12)
    axis.grid(axis="x", alpha=0.3)
    return figure, [f"{chart.title}: {more} more bars are not drawn"] if more > 0 else []
