"""The subscriptions that match a client, and the metrics and interval that they make together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from odradek.findings.presets import EVERYTHING, listed, selects
from odradek_console.cluster_rows import SubscriptionRow
from odradek_console.json_form import JsonRow
from odradek_console.reading.cluster_view import SELECTORS, is_matched, selectors
from odradek_console.rows import ClientRow

DEFAULT_INTERVAL_MS: Final = 300_000
"""Kafka's: of a subscription without an interval, and the longest that clients are told."""


@dataclass(frozen=True, slots=True)
class Reason(JsonRow):
    """A condition of a subscription, and the value of the client that fulfills it."""

    selector: str
    pattern: str
    value: str
    """Empty if the console does not look at it, as for a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched(JsonRow):
    """A subscription that matches a client."""

    row: SubscriptionRow
    reasons: tuple[Reason, ...]
    """Empty if it matches every client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(JsonRow):
    """All subscriptions of a client as one."""

    matched: tuple[Matched, ...]
    metrics: tuple[str, ...]
    """Prefixes of names; ``*`` for all metrics."""
    interval_ms: int

    @property
    def leases(self) -> list[Matched]:
        """The subscriptions that end: those of watches."""
        return [each for each in self.matched if each.row.lease_end_s is not None]

    def asks_for(self, metric: str) -> bool:
        """Whether some subscription asks for a metric."""
        return selects(self.metrics, metric)


def told_to(subscriptions: Iterable[SubscriptionRow], row: ClientRow) -> Told:
    """The subscriptions of a client as one. Of several intervals the shortest counts, as in a broker."""
    matched = tuple(
        Matched(row=each, reasons=reasons(each.match, row))
        for each in subscriptions
        if is_matched(each.match, row)
    )
    prefixes = {prefix for each in matched for prefix in listed(each.row.metrics)}
    intervals = [each.row.interval_ms or DEFAULT_INTERVAL_MS for each in matched]
    return Told(
        matched=matched,
        metrics=(EVERYTHING,) if EVERYTHING in prefixes else tuple(sorted(prefixes)),
        interval_ms=min([DEFAULT_INTERVAL_MS, *intervals]),
    )


def reasons(match: str, row: ClientRow) -> tuple[Reason, ...]:
    """Each condition with the value that fulfills it."""
    return tuple(
        Reason(selector, pattern, getattr(row, SELECTORS[selector]) if selector in SELECTORS else "")
        for selector, pattern in selectors(match).items()
    )
