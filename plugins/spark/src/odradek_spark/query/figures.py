"""Draws pages with matplotlib, and writes the files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek_spark.query.axes import (
    COLORS,
    GREY,
    SECOND_LINE,
    SECOND_LINE_PT,
    TITLE_CHARS,
    TROUBLE,
    axis_unit,
    colors_of,
    drawn,
    near,
    say_nothing,
    thousands,
)
from odradek_spark.query.chart import MAX_PANELS, Bars, Page, Panel, SpanPanel
from odradek_spark.query.line_panel import draw_lines
from odradek_spark.query.localtime import days, local, zone
from odradek_spark.query.units import said, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_BARS = 40
WIDTH_IN = 10.0
HEADLINE_CHARS = 80
SUBTITLE_CHARS = 110
PANEL_IN = 2.1
HEAD_IN = 0.75
ROW_IN = 0.3
TICKS: Final = ("%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S")
ZERO_TICKS: Final = ("", "%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M")
"""Formats of ticks by years, months, days, hours, minutes and seconds; of those that begin a longer unit."""
DPI = 120
FORMATS: Final = {".pdf": "pdf", ".svg": "svg"}
"""By suffix of the file; every other is PNG."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The result of `draw`."""

    files: Sequence[Path]
    left_out: Sequence[str]
    """A line about each part that did not fit."""


def draw(pages: Sequence[Page], path: Path) -> Drawn:
    """Write pages as files: PNG, or SVG or PDF if the file is called so.

    A PDF has all pages. Otherwise the first page has the given name, and the others add their id to it:
    ``orders.png``, ``orders-throttling.png``.

    Raises:
        OSError: A file is not writable.
    """
    with styled():
        figures = [figure_of(page) for page in pages]
        left_out = [line for _, lines in figures for line in lines]
        form = FORMATS.get(path.suffix.lower(), "png")
        if form == "pdf":
            save_pdf([figure for figure, _ in figures], path)
            return Drawn([path], left_out)
        files = [path, *(path.with_stem(f"{path.stem}-{page.id}") for page in pages[1:])]
        for (figure, _), file in zip(figures, files, strict=True):
            figure.savefig(file, dpi=DPI, format=form)
    return Drawn(files, left_out)


def save_pdf(figures: Sequence[Figure], path: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(path) as document:
        for figure in figures:
            document.savefig(figure)


@contextmanager
def styled() -> Iterator[None]:
    """Names of clients may have any sign: no mathematics, and no warning about signs that the font lacks."""
    import matplotlib as mpl

    mpl.use("Agg")
    with mpl.rc_context({"text.parse_math": False, "font.size": 9}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def figure_of(page: Page) -> tuple[Figure, list[str]]:
    """Draw one page.

    Returns:
        The figure, and a line about each part that did not fit.
    """
    from matplotlib.figure import Figure

    shown = page.panels[:MAX_PANELS]
    left_out = [f"{panel.title}: not drawn, the page is full" for panel in page.panels[MAX_PANELS:]]
    heights = [height_of(panel) for panel in shown] or [PANEL_IN]
    figure = Figure(figsize=(WIDTH_IN, HEAD_IN + sum(heights)), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08, hspace=0.06)  # type: ignore[union-attr,call-arg]
    figure.suptitle(drawn(page.title, HEADLINE_CHARS), x=0.01, ha="left", fontsize=13, fontweight="bold")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel in zip(axes, shown, strict=False):
        match panel:
            case Panel():
                left_out += draw_lines(axis, panel)
            case SpanPanel():
                left_out += draw_spans(axis, panel)
            case Bars():
                left_out += draw_bars(axis, panel)
    if not shown:
        say_nothing(axes[0], page.nothing)
    timed = [axis for axis, panel in zip(axes, shown, strict=False) if not isinstance(panel, Bars)]
    range_of = page.between or times_between(shown)
    if timed and range_of is not None:
        draw_time(timed, *range_of)
    if page.subtitle:
        lower = any(text.get_gid() == SECOND_LINE for text in axes[0].texts)
        axes[0].annotate(
            drawn(page.subtitle, SUBTITLE_CHARS),
            (0.0, 1.0),
            xytext=(0, 24 + SECOND_LINE_PT * lower),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=9,
            color=GREY,
        )
    return figure, left_out


def height_of(panel: Panel | SpanPanel | Bars) -> float:
    """The height of a panel in inches."""
    match panel:
        case Panel():
            return PANEL_IN
        case SpanPanel():
            return 0.7 + ROW_IN * max(1, min(len(panel.spans), MAX_BARS))
        case Bars():
            return 0.9 + ROW_IN * max(1, min(len(panel.bars), MAX_BARS))


def draw_spans(axis: Axes, panel: SpanPanel) -> list[str]:
    """Draw a row for each span; an open one ends in an arrow."""
    shown = panel.spans[:MAX_BARS]
    axis.set_title(drawn(panel.title, TITLE_CHARS), fontsize=10, loc="left")
    if not shown:
        say_nothing(axis, "none")
        return []
    colors = colors_of([*panel.groups, *(span.group for span in shown)])
    for row, span in enumerate(shown):
        start, end = local(span.start), local(span.end)
        color = colors[span.group]
        axis.plot([start, end], [row, row], color=color, linewidth=7, solid_capstyle="butt")  # type: ignore[arg-type]
        if span.is_open:
            axis.plot([end], [row], marker=">", color=color, markersize=10)  # type: ignore[arg-type]
    axis.set_yticks(range(len(shown)), [drawn(span.label) for span in shown], fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(shown) - 0.4, -0.6)
    axis.grid(axis="x", alpha=0.3)
    axis.spines[["top", "right", "left"]].set_visible(False)
    more = len(panel.spans) - len(shown)
    return [f"{panel.title}: {more} more rows are not drawn"] if more > 0 else []


def draw_bars(axis: Axes, chart: Bars) -> list[str]:
    """Draw horizontal bars, so that their labels are readable; the first is at the top."""
    shown, more = chart.bars[:MAX_BARS], len(chart.bars) - MAX_BARS
    axis.set_title(drawn(chart.title, TITLE_CHARS), fontsize=10, loc="left")
    if not shown:
        say_nothing(axis, "no rows")
        return []
    lengths = [length for _, length in shown]
    limits = [limit for limit in chart.limits if near(limit, lengths)]
    scale = scale_of(chart.unit, lengths)
    found = axis.barh(
        range(len(shown)), [length / scale.size for length in lengths], color=COLORS[0], height=0.7
    )
    axis.bar_label(found, [said(length, chart.unit) for length in lengths], padding=4, fontsize=8)
    axis.set_yticks(range(len(shown)), [drawn(label) for label, _ in shown])
    axis.set_ylim(len(shown) - 0.4, -0.6)
    axis.margins(x=0.14)
    axis.set_xlabel(axis_unit(scale))
    axis.xaxis.set_major_formatter(thousands())
    axis.grid(axis="x", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    for limit in limits:
        axis.axvline(limit.value / scale.size, color=TROUBLE, linestyle=":", linewidth=1.4)
    beside = "; ".join(limit.label for limit in chart.limits)
    if beside:
        axis.annotate(
            drawn(beside, TITLE_CHARS),
            (1.0, 0.0),
            xytext=(0, -30),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=TROUBLE,
        )
    return [f"{chart.title}: {more} more bars are not drawn"] if more > 0 else []


def draw_time(axes: Sequence[Axes], start: datetime, end: datetime) -> None:
    """One time axis for all panels, in local time, which its label names."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if start == end:
        start, end = start - timedelta(seconds=30), end + timedelta(seconds=30)
    margin = (end - start) * 0.01
    for axis in axes:
        axis.set_xlim(local(start - margin), local(end + margin))  # type: ignore[arg-type]
        locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(
            ConciseDateFormatter(locator, formats=TICKS, zero_formats=ZERO_TICKS, show_offset=False)  # type: ignore[no-untyped-call]
        )
        axis.tick_params(axis="x", labelbottom=axis is axes[-1])
    axes[-1].set_xlabel(f"{days(start, end)}, local time: {zone(end)}")


def times_between(panels: Iterable[Panel | SpanPanel | Bars]) -> tuple[datetime, datetime] | None:
    """The time range of the data; None without any."""
    times: list[datetime] = []
    for panel in panels:
        if isinstance(panel, Panel):
            times += [at for line in panel.lines for at in line.times]
        elif isinstance(panel, SpanPanel):
            times += [at for span in panel.spans for at in (span.start, span.end)]
    return (min(times), max(times)) if times else None
