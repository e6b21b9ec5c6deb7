"""One client of a fleet."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek_console.engine.client_entry import ClientEntry
from odradek_console.engine.client_series import Labels
from odradek_console.engine.findings import Finding
from odradek_console.engine.percentile import Percentile
from odradek_console.engine.series_history import SeriesHistory


@dataclass(slots=True, eq=False)
class Client:
    """A client instance with its history and its findings."""

    entry: ClientEntry
    history: SeriesHistory = field(default_factory=SeriesHistory)
    found: list[Finding] = field(default_factory=list)
    """Findings from its series, as of its last push."""
    shown: dict[tuple[str, Labels], Finding] = field(default_factory=dict)
    """The findings of the last look, and those that were over then."""
    identity: tuple[str, ...] = ()
    """See `identities.identity_of`."""
    latency: Percentile = field(default_factory=Percentile)
    """Of a client that a gateway observes."""
    assigned: tuple[int, float | None] = (0, None)
    """Its pushes and its assigned partitions as of then; None if it has told none."""
