"""The figures of a destination with totals, for its metrics."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from odradek.temporality.counts import Counts

if TYPE_CHECKING:
    from odradek.temporality.budgets.folding import Folding
    from odradek.temporality.engine import Engine


@runtime_checkable
class HasBudgets(Protocol):
    """An engine whose series have budgets."""

    folding: Folding


@dataclass(slots=True)
class TotalsFigures:
    """Counts of all engines, and their sizes after the last commit. One thread writes, any may read."""

    counts: Counts = field(default_factory=Counts)
    streams: int = 0
    clients: int = 0
    held_bytes: int = 0
    """Approximate memory."""
    commits: int = 0
    commit_ns: int = 0
    """Time of all commits."""
    foldings: tuple[Folding, ...] = ()
    """The budgets for series, by engine; empty for a destination without budgets."""

    def committed(self, took_ns: int) -> None:
        """Count a commit."""
        self.commits += 1
        self.commit_ns += took_ns

    def measure(self, engines: Collection[Engine]) -> None:
        """Take the sizes of all engines."""
        self.streams = sum([engine.clients.streams for engine in engines])
        self.clients = sum([len(engine.clients.states) for engine in engines])
        self.held_bytes = sum([engine.held_bytes for engine in engines])
        self.foldings = tuple([engine.folding for engine in engines if isinstance(engine, HasBudgets)])
