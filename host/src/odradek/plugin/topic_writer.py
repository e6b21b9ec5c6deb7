"""The interface of a topic writer: a plugin that writes the telemetry topic of a cluster.

There is no base class: an object that has the methods implements the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from odradek.plugin.protocols import TelemetryRecord


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The reason why the cluster did not acknowledge a record."""

    reason: str
    """One of a few short names, for a metric."""
    text: str
    """For the log."""
    of_record: bool = False
    """Only this record is at fault, not the cluster: it is too large, or invalid."""


Report: TypeAlias = Callable[[int, NotWritten | None], None]
"""Tell the host the outcome of a record, by its number; None if the cluster acknowledged it. Any thread may
call it."""


@runtime_checkable
class TopicWriter(Protocol):
    """Writes records to the telemetry topic of a cluster (``telemetry.durability = "kafka"``).

    The record's key, value and headers are those of the telemetry topic: `record_key`, the bytes of the
    payload, `encode_headers`. A record is acknowledged when it survives the loss of a broker.
    """

    def start(self, topic: str, timeout_ms: int, report: Report) -> None:
        """Called once, on the host's event loop, before the first record. The cluster may still be down. Must
        not block.

        Args:
            topic: Name of the topic.
            timeout_ms: A record that is not acknowledged after this time must not be sent any more: its
                client is told to push again.
            report: To be called exactly once for each record.
        """

    def write(self, number: int, record: TelemetryRecord) -> None:
        """Begin to write a record. Called on the host's event loop: must not block.

        Args:
            number: Of the record, for the report.
            record: The record; do not change it.
        """

    def flush(self, timeout_s: float) -> None:
        """Wait until all records have their reports, at most this long. Called on a thread, before ``close``.

        No record follows.
        """
