"""The counts of the engine, and its bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from odradek.settings import LONG, Whole, declare

LINGER_MS: Final = 300_000


class Rejection(StrEnum):
    """Why a data point is not added."""

    NOT_FINITE = "not_finite"
    NEGATIVE = "negative"
    """A negative value of a monotonic sum."""
    TEMPORALITY = "temporality"
    """Neither delta nor cumulative."""
    NO_VALUE = "no_value"
    BUCKETS = "buckets"
    """The bounds do not rise, the buckets do not fit them, or the scale is out of range."""
    TOO_MANY_STREAMS = "too_many_streams"
    """A new stream would exceed a limit."""


@dataclass(slots=True)
class Counts:
    """Totals since the engine was made."""

    records: int = 0
    repeated_records: int = 0
    lost_records: int = 0
    """Records that the log had deleted before they were read."""
    added_points: int = 0
    """Points of sums and histograms that were added."""
    rejected_points: Counter[Rejection] = field(default_factory=Counter)
    gaps: int = 0
    gap_ns: int = 0
    """Time for which clients' increments are missing, summed over all streams."""
    overlaps: int = 0
    bad_starts: int = 0
    """Points without a start time, or with one after their time."""
    duplicates_in_push: int = 0
    epochs: int = 0
    """Streams that began again."""
    inexact_streams: int = 0
    """Streams of integers whose total exceeds what a double can show exactly."""
    dropped_exemplars: int = 0
    forgotten_clients: int = 0
    forgotten_streams: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the engine. Streams that exist are never refused or evicted by them."""

    # fmt: off
    max_streams: int = declare(
        "totals.max.series", Whole(LONG, 1), 1_000_000,
        "Limit of counters and histograms; points of further ones are left out.", unit="series",
    )
    max_client_streams: int = declare(
        "totals.max.client.series", Whole(LONG, 1), 20_000,
        "Limit of counters and histograms of one client instance; points of further ones are left out.",
        unit="series",
    )
    max_bytes: int = declare(
        "totals.max.bytes", Whole(LONG, 1 << 20), 256 << 20,
        "Limit of memory for the totals; points of new series are left out.", unit="bytes",
    )
    retain_ms: int = declare(
        "totals.retain.ms", Whole(LONG, LINGER_MS), 24 * 3_600_000,
        "How long the totals of a silent client, or of a series that it no longer sends, are kept.",
        unit="ms",
    )
    # fmt: on
    max_client_bytes: int = 32 << 20
    """Texts of all streams of one client instance, as they are stored. A long Resource counts once for each
    stream, so one push could fill the memory that all clients share."""
    max_layouts: int = 2_048
    max_layout_bytes: int = 32 << 20
    linger_ms: int = LINGER_MS
    """How long instances that have said goodbye keep their totals."""

    def share(self, parts: int) -> Limits:
        """The limits of each of several engines."""
        if parts == 1:
            return self
        return replace(
            self,
            max_streams=-(-self.max_streams // parts),
            max_bytes=-(-self.max_bytes // parts),
            max_layouts=-(-self.max_layouts // parts),
            max_layout_bytes=-(-self.max_layout_bytes // parts),
        )
