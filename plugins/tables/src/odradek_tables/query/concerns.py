"""Concerns and troubles of `odradek.findings` for the metrics that clients report: the parts of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.findings.concerns import CONCERNS
from odradek.findings.troubles import TROUBLES, Trouble
from odradek_tables.query.units import duration, said

ORDER: Final = {
    name: place
    for place, name in enumerate(
        name for concern in CONCERNS for chart in concern.charts for name in chart.names
    )
}
"""The place of each metric."""


def place(name: str) -> int:
    """The place of a metric among those that matter; all others come after them."""
    return ORDER.get(name, len(ORDER))


def troubles_of(names: Iterable[str]) -> list[Trouble]:
    """The troubles that metrics show, by their full names."""
    known = set(names)
    return [each for each in TROUBLES if known.intersection(each.metrics.values())]


def is_limit(trouble: Trouble) -> bool:
    """Whether the threshold is a value of the metric itself, and not of its increase or share."""
    return trouble.is_plain and not trouble.over_s and not trouble.per


def stated(trouble: Trouble) -> str:
    """The condition of a trouble for people: ``above 5 s for 3 min``."""
    side = {">": "above", ">=": "from", "<": "below", "<=": "up to"}[trouble.op]
    held = f" for {duration(trouble.for_s)}" if trouble.for_s else ""
    if trouble.op == ">" and not trouble.threshold:
        return f"any{held}"
    return f"{side} {said(trouble.threshold, trouble.unit)}{held}"
