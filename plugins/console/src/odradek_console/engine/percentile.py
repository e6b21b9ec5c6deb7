"""The 99th percentile of a client's latency in its last window, from the histogram of a gateway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from odradek.findings.incidents import OBSERVED
from odradek.temporality.client_state import ClientState
from odradek.temporality.histogram import HistogramState
from odradek_console.engine.client_series import Labels, Place, Places

LATENCY: Final = OBSERVED + "latency"
APIS: Final = ("Produce", "Fetch")
"""The first one that a client has used in the window is looked at."""
SHARE: Final = 0.99


@dataclass(slots=True)
class Percentile:
    """The latency of one client."""

    before: dict[Labels, list[int]] = field(default_factory=dict)
    """The counts of each histogram at the window before."""
    time_ms: int = 0
    """The end of the window."""
    value: float = 0.0
    """Milliseconds; 0 if nothing was measured."""
    api: str = ""

    def add(self, state: ClientState, places: Places, time_ms: int) -> None:
        """Look at a window that has ended."""
        found = places.get(LATENCY, ())
        if not found:
            return
        counts = {api: self.counted(state, found, api) for api in APIS}
        api = next((each for each in APIS if any(counts[each][1])), "")
        if api:
            self.value, self.time_ms, self.api = percentile(*counts[api]), time_ms, api

    def counted(
        self, state: ClientState, places: Sequence[Place], api: str
    ) -> tuple[Sequence[float], list[int]]:
        """The bounds, and what the window has added to each bucket, of all nodes."""
        bounds: Sequence[float] = ()
        added: list[int] = []
        for place, labels in places:
            known = state.distributions.get(place)
            if dict(labels).get("api") != api or not isinstance(known, HistogramState):
                continue
            before = self.before.get(labels, [0] * len(known.counts))
            self.before[labels] = known.counts
            if bounds and known.bounds != bounds:
                continue
            bounds = known.bounds
            new = [max(0, now - then) for now, then in zip(known.counts, before, strict=False)]
            added = [sum(pair) for pair in zip(added, new, strict=True)] if added else new
        return bounds, added


def percentile(bounds: Sequence[float], counts: Sequence[int]) -> float:
    """The value below which a share of `SHARE` lies, straight between the bounds of its bucket."""
    wanted, low = SHARE * sum(counts), 0.0
    for upto, count, high in zip(accumulate(counts), counts, (*bounds, bounds[-1]), strict=False):
        if upto >= wanted and count:
            return low + (high - low) * (count - (upto - wanted)) / count
        low = high
    return low
