"""Shared gauges: the sum, mean, least or greatest of the values of all live clients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from odradek.temporality.budgets.member import Other, Pairs
from odradek.temporality.budgets.other_streams import aggregate_of
from odradek.temporality.client_state import ClientState, Mark
from odradek.temporality.clients import oldest_live_s
from odradek.temporality.stream_times import NS_PER_MS

REFRESH_MS: Final = 1_000
REFRESH_MS_PER_MEMBER: Final = 0.2
"""Limits the work to a few percent of the time: about ten microseconds of every 200."""


class SharedValue:
    """The aggregates of the values of a gauge."""

    __slots__ = ("count", "greatest", "least", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.least = math.inf
        self.greatest = -math.inf

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.least = min(self.least, value)
        self.greatest = max(self.greatest, value)

    def result(self, aggregate: str) -> float:
        """The value of the shared stream; NaN if no client has one."""
        if not self.count:
            return math.nan
        if aggregate == "sum":
            return self.total
        if aggregate == "mean":
            return self.total / self.count
        return self.greatest if aggregate == "max" else self.least


def values_of(client: ClientState, pairs: Pairs) -> Iterator[tuple[int, float]]:
    """The values of a client's gauges, each after the position of the shared stream."""
    oldest_s = oldest_live_s(client, client.last_ms)
    for position, home in pairs:
        value = client.amounts[2 * position] + client.amounts[2 * position + 1]
        ended = client.marks and client.marks.get(position, Mark(0)) & Mark.ENDED
        if value == value and not ended and client.seen[position] >= oldest_s:
            yield home, value


def set_gauges(target: ClientState, homes: Iterable[int], values: Iterable[tuple[int, float]]) -> None:
    """Set the shared gauges of a client or an ``other`` instance."""
    shared = {home: SharedValue() for home in homes}
    for home, value in values:
        shared[home].add(value)
    known = target.shape.known
    for home, found in shared.items():
        aggregate = aggregate_of(known.identity(target.shape.keys[home]))
        target.amounts[2 * home] = found.result(aggregate)
        target.amounts[2 * home + 1] = 0.0
        target.seen[home] = target.last_ms // 1000
        now_ns = target.last_ms * NS_PER_MS
        target.times[2 * home] = target.times[2 * home] or now_ns
        target.times[2 * home + 1] = now_ns


def set_own_gauges(client: ClientState, pairs: Pairs) -> None:
    """Set the gauges of a client that combine its own hidden gauges."""
    if pairs:
        set_gauges(client, [home for _, home in pairs], values_of(client, pairs))


def refresh_gauges(other: Other, now_ms: int) -> bool:
    """Compute the gauges of an ``other`` instance if they are old; return whether they were."""
    due_ms = max(REFRESH_MS, int(REFRESH_MS_PER_MEMBER * len(other.members)))
    if other.refreshed_ms and 0 <= now_ms - other.refreshed_ms < due_ms:
        return False
    other.refreshed_ms = now_ms
    pairs = [
        (member.client, part.gauges)
        for member in other.members.values()
        for part in member.parts or ()
        if part.other is other and part.is_current and part.gauges
    ]
    homes = {home for _, gauges in pairs for _, home in gauges}
    set_gauges(other.client, homes, (each for found in pairs for each in values_of(*found)))
    return True
