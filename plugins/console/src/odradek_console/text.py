"""Tables, sparklines and short numbers for terminals of 60 columns or more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final, Generic, TypeVar

from rich.cells import cell_len, set_cell_size

from odradek.findings.node_names import node_name

NODE_KEYS: Final = ("node_id", "node.id")
BARS: Final = "▁▂▃▄▅▆▇█"
GAP: Final = "  "
UNITS: Final = {"By": "B", "By/s": "B/s", "records/s": "/s", "records": "", "1/s": "/s", "1": ""}
"""How units of metrics are written for people."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """A column of a table."""

    heading: str
    cell: Callable[[Row], str]
    least: int
    """Its width where there is no more room."""
    most: int
    rank: int
    """Columns with the highest rank are left out first."""
    right: bool = False


def table_lines(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> list[str]:
    """The heading and the rows, no line wider than ``width``."""
    shown = fitting(columns, width)
    texts = [[column.cell(row) for column in shown] for row in rows]
    widths = shared(shown, texts, width)
    return [
        GAP.join(
            aligned(text, size, column.right) for text, size, column in zip(cells, widths, shown, strict=True)
        ).rstrip()
        for cells in ([column.heading for column in shown], *texts)
    ]


def fitting(columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """The columns for which there is room."""
    shown = list(columns)
    while len(shown) > 1 and sum(each.least for each in shown) + len(GAP) * (len(shown) - 1) > width:
        shown.remove(max(shown, key=lambda each: each.rank))
    return shown


def shared(columns: Sequence[Column[Row]], texts: Sequence[Sequence[str]], width: int) -> list[int]:
    """The widths of columns: what is left is given to the first ones that need it."""
    widths = [each.least for each in columns]
    left = width - sum(widths) - len(GAP) * (len(widths) - 1)
    for place, column in enumerate(columns):
        longest = max([cell_len(column.heading), *(cell_len(row[place]) for row in texts)])
        more = min(max(0, min(longest, column.most) - widths[place]), max(0, left))
        widths[place] += more
        left -= more
    return widths


def aligned(text: str, width: int, right: bool) -> str:
    """A text of exactly this width, cut with an ellipsis."""
    space = " " * (width - cell_len(text))
    return clipped(space + text if right else text + space, width)


def clipped(text: str, width: int) -> str:
    """A text of at most this width, cut with an ellipsis."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def wrapped(text: str, width: int, indent: int) -> list[str]:
    """A text as lines of at most this width, each with the indent."""
    space = " " * indent
    lines = wrap(text, width, initial_indent=space, subsequent_indent=space, break_on_hyphens=False)
    return [clipped(line, width) for line in lines]


def label_text(labels: Iterable[tuple[str, str]], separator: str = ", ") -> str:
    """Labels as ``topic=orders, partition=0``; nodes by the names that Prometheus has: ``node_id=1``."""
    return separator.join(f"{key}={node_name(value) if key in NODE_KEYS else value}" for key, value in labels)


def counted(number: int, noun: str) -> str:
    """``1 client``, ``2 clients``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some_of(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def sparkline(values: Sequence[float], width: int) -> str:
    """The latest values as bars, from zero to the largest."""
    shown = [each for each in values if math.isfinite(each)][-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return BARS[0] * len(shown)
    return "".join(BARS[min(7, max(0, int(each / top * 7.999)))] for each in shown)


def short(value: float | None) -> str:
    """A number in at most six characters; a dash for none."""
    if value is None or not math.isfinite(value):
        return "-"
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (limit if suffix != 'k' else 1e3):.3g}{suffix}"
    if 0 < abs(value) < 0.001:
        return "<0.001" if value > 0 else "-0.000"
    return f"{value:.3g}" if abs(value) < 1_000 else f"{value:.0f}"


def readable(value: float | None, unit: str) -> str:
    """A value with a unit that a person reads at once: ``12 MB/s``, ``3 min``, ``5 %``; a dash for none."""
    if value is None or not math.isfinite(value):
        return "-"
    unit = UNITS.get(unit, unit).replace("{", "").replace("}", "")
    if unit in ("ms", "s"):
        return duration(value / 1000 if unit == "ms" else value)
    if unit.startswith("share"):
        percent = f"{100 * value:.3g}" if value == 0 or abs(value) >= 0.001 else "<0.1"
        return f"{percent} %{unit.removeprefix('share')}"
    if unit.startswith("B"):
        for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= limit:
                return f"{value / limit:.3g} {prefix}{unit}"
        return f"{value:.3g} {unit}"
    return f"{short(value)}{unit}" if unit.startswith("/") else f"{short(value)} {unit}".strip()


def duration(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for limit, size, name in ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min"), (1, 1, "s")):
        if abs(seconds) >= limit:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1000:.3g} ms"


def age(milliseconds: float) -> str:
    """A duration in its largest unit."""
    seconds = max(0.0, milliseconds / 1000)
    for limit, suffix in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * limit:
            return f"{seconds / limit:.0f}{suffix}"
    return f"{seconds:.0f}s" if seconds >= 10 else f"{seconds:.1f}s".replace(".0s", "s")
