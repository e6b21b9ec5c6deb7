"""The interface of a source: a plugin that brings telemetry records in from elsewhere.

There is no base class: an object that has the methods implements the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from odradek.plugin.protocols import TelemetryRecord


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that the host will never store."""

    record: TelemetryRecord
    reason: str


@dataclass(slots=True)
class Receipt:
    """The outcome of some records. Each of them is in exactly one field."""

    stored: int = 0
    repeated: int = 0
    """Records that were already stored: their origin is that of an earlier record."""
    refused: list[Refused] = field(default_factory=list)
    left: list[TelemetryRecord] = field(default_factory=list)
    """Records for which the log has no room now. Wait, then store them again, or lose them knowingly."""


class Intake(Protocol):
    """The host's side: takes the records of one source. Call it on the source's own loop."""

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        """Store records, in their order within a client instance. Return when each has its outcome.

        A stored record is as safe as a push that was answered (``telemetry.durability``). The host sets the
        labels of a record that is not `TelemetryRecord.labeled`. Calls may overlap.
        """

    def listening(self) -> None:
        """Tell the host that the listeners of the source are open; see `odradek.plugin.Listens`."""

    def unreadable(self, records: int) -> None:
        """Count records that are not telemetry at all, so that the accounts have everything that came."""

    def answered(self, outcome: str) -> None:
        """Count a request of a sender by its outcome, a word from a short list of the plugin.

        Only sources that senders call have requests. The metric is ``odradek.source.requests``.
        """


@runtime_checkable
class Source(Protocol):
    """Brings telemetry records in from elsewhere."""

    async def run(self, intake: Intake) -> None:
        """Store records until the call is cancelled. Tell the place of origin only what is stored.

        Called on the source's own loop and thread. If the call ends by itself, with or without an exception,
        the host logs that and calls again after a wait. It is cancelled when the host stops, and must then
        release its resources within ``shutdown.timeout.ms``.
        """

    def lag(self) -> int | None:
        """The number of records that wait at the place of origin; None if that is not known.

        Called from another thread, for the metrics. Must not block.
        """
