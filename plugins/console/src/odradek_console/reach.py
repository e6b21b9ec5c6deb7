"""The clients and the series that a subscription selects, among those that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odradek.findings.presets import EVERYTHING, listed
from odradek_console.reading.cluster_view import matcher
from odradek_console.rows import ClientRow
from odradek_console.view import View

SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The known clients that a subscription selects."""

    clients: int
    series: int
    """Their known series whose names begin with one of the prefixes."""
    pushes_per_s: float
    """With the interval of the subscription."""
    some: tuple[ClientRow, ...]


def reach(view: View, rows: Sequence[ClientRow], metrics: str, match: str, interval_ms: int) -> Reach:
    """The reach of a subscription.

    Args:
        view: The clients.
        rows: Rows of all clients that are not gone.
        metrics: Prefixes of names, with commas; ``*`` for all, empty for none.
        match: Selectors and patterns, with commas; empty for all clients.
        interval_ms: The push interval.
    """
    fits = matcher(match)
    hit = [row for row in rows if fits(row)]
    series = view.series_with({row.client_instance_id for row in hit}, prefixes(metrics))
    return Reach(
        clients=len(hit),
        series=series,
        pushes_per_s=len(hit) * 1000 / interval_ms if interval_ms else 0.0,
        some=tuple(hit[:SHOWN]),
    )


def prefixes(metrics: str) -> tuple[str, ...]:
    """The prefixes of ``metrics``; the empty prefix selects every name."""
    found = listed(metrics)
    return ("",) if EVERYTHING in found else found
