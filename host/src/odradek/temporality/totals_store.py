"""The place where a destination's totals are stored: a file, or a topic of a cluster.

A store has parts. Each belongs to some partitions of the log, and has an engine of its own: totals and the
next offset of a part change together.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from odradek.plugin import Origin

if TYPE_CHECKING:
    from odradek.temporality.engine import Engine
    from odradek.temporality.totals_figures import TotalsFigures
    from odradek.temporality.totals_settings import TotalsSettings


class StoreFailed(Exception):
    """Totals cannot be stored or read now. The message gives the reason."""


class TotalsStore(Protocol):
    """Stores totals. One thread uses it at a time.

    Raises:
        StoreFailed: The store cannot be used now.
        BadState: It does not contain totals, or they are damaged.
    """

    name: str
    """For messages: the path, or the topic."""
    parts: int
    """The number of parts, which share the limits of the settings. Known after `open`."""

    def open(self) -> None:
        """Open the store, and create it if it is missing."""

    def part_of(self, position: Origin | None) -> int:
        """The part that a record belongs to, by its position in the log."""

    def load(self, engine: Engine, part: int) -> None:
        """Take over a part, and let a new engine continue from it. A former owner cannot commit any more."""

    def commit(self, engine: Engine, part: int) -> None:
        """Store the changes of a part and its next offsets, all or nothing.

        If it fails, replace the engine by a new one, and load that.
        """

    def close(self) -> None:
        """Close the store."""


@runtime_checkable
class KeepsTotals(Protocol):
    """A forwarder that has totals."""

    settings: TotalsSettings

    @property
    def figures(self) -> TotalsFigures:
        """Figures for metrics. Any thread may read them."""

    def is_rebuilt(self) -> bool:
        """Whether the totals are to be built again from the beginning of the log. Call before the start."""

    def store_in(self, store: TotalsStore) -> None:
        """Store the totals here instead of in the file of the settings. Call before the start."""

    def keep(self, parts: Collection[int]) -> None:
        """Forget all parts of the store but these: the others belong to other processes."""
