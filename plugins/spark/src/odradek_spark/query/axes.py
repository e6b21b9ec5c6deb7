"""The look of all panels: colors that color-blind people tell apart, short labels, readable numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from odradek_spark.query.chart import Limit
from odradek_spark.query.units import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LABEL_CHARS = 48
TITLE_CHARS = 100
SECOND_LINE: Final = "second line"
"""The id of a line between the title of a panel and the panel."""
SECOND_LINE_PT = 14
COLORS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
"""Okabe and Ito's palette; its vermilion is kept for limits."""
TROUBLE: Final = "#D55E00"
GREY: Final = "#666666"
NEAR = 1.5
"""A limit up to this many times the largest value is drawn; a farther one would flatten the lines."""


def axis_unit(scale: Scale) -> str:
    """The unit as the label of an axis."""
    return f"per {scale.unit[1:]}" if scale.unit.startswith("/") else scale.unit


def near(limit: Limit, values: Sequence[float]) -> bool:
    """Whether a limit can be drawn without flattening the lines."""
    return limit.value != 0 and bool(values) and abs(limit.value) <= NEAR * max(map(abs, values))


def halo() -> list[Any]:
    """A white rim, so that a text is readable over a line."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground="white", alpha=0.8)]


def colors_of(groups: Iterable[str]) -> dict[str, str]:
    """A color for each group, in order."""
    return {group: COLORS[index % len(COLORS)] for index, group in enumerate(dict.fromkeys(groups))}


def tidy(axis: Axes) -> None:
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.yaxis.set_major_formatter(thousands())
    axis.locator_params(axis="y", nbins=5)


def thousands() -> Any:
    """Numbers on axes with commas between thousands."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.10g}")


def say_nothing(axis: Axes, text: str) -> None:
    """An empty panel says so."""
    axis.text(0.5, 0.5, text, ha="center", va="center", transform=axis.transAxes, color=GREY, fontsize=11)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)


def drawn(label: str, chars: int = LABEL_CHARS) -> str:
    """A shortened label. The space hides a leading ``_``, which would keep matplotlib from showing it."""
    shown = shortened(label, chars)
    return f" {shown}" if shown.startswith("_") else shown


def shortened(text: str, chars: int) -> str:
    """A text of at most so many characters, shortened in the middle: names often differ at the end."""
    head = (chars - 1) // 2
    return text if len(text) <= chars else f"{text[:head]}…{text[head + 1 - chars :]}"
