"""Concerns and troubles of `odradek.findings` for people: the order of metrics, and conditions in words."""

from __future__ import annotations

from typing import Final

from odradek.findings.concerns import CONCERNS
from odradek.findings.troubles import Trouble
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


def stated(trouble: Trouble) -> str:
    """The condition of a trouble for people: ``above 5 s for 3 min``."""
    side = {">": "above", ">=": "from", "<": "below", "<=": "up to"}[trouble.op]
    held = f" for {duration(trouble.for_s)}" if trouble.for_s else ""
    if trouble.op == ">" and not trouble.threshold:
        return f"any{held}"
    return f"{side} {said(trouble.threshold, trouble.unit)}{held}"
