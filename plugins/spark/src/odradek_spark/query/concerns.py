"""Concerns and troubles of `odradek.findings` for the metrics that clients report.

A concern is a page of a picture and a part of a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from odradek.findings.concerns import CONCERNS, Chart, Concern
from odradek.findings.troubles import TROUBLES, Trouble
from odradek_spark.query.units import duration, said

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
    return not trouble.over_s and not trouble.per


def condition(op: str, threshold: float, unit: str, for_s: float = 0.0) -> str:
    """A condition for people: ``above 5 s for 3 min``."""
    side = {">": "above", ">=": "from", "<": "below", "<=": "up to"}[op]
    held = f" for {duration(for_s)}" if for_s else ""
    if op == ">" and not threshold:
        return f"any{held}"
    return f"{side} {said(threshold, unit)}{held}"


def stated(trouble: Trouble) -> str:
    """The condition of a trouble."""
    return condition(trouble.op, trouble.threshold, trouble.unit, trouble.for_s)


def concerns_of(names: Iterable[str]) -> list[tuple[Concern, list[tuple[Chart, tuple[str, ...]]]]]:
    """The concerns and charts for which there are metrics, each chart with the full names to draw."""
    known = set(names)
    found = []
    for concern in CONCERNS:
        charts = [(chart, chart.of(known)) for chart in concern.charts]
        if any(drawn for _, drawn in charts):
            found.append((concern, [(chart, drawn) for chart, drawn in charts if drawn]))
    return found
