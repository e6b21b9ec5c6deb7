"""The number of all committed and pending offsets, and the room for more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock
from odradek.wire.limits import INT32_MAX, INT64_MAX

Offsets = dict[TopicPartition, CommittedOffset]


@dataclass(slots=True, eq=False)
class OffsetTotal:
    """Counts the offsets of all groups. They may only be changed with `put` and `remove`."""

    max_offsets: int = INT32_MAX
    max_metadata: int = INT64_MAX
    clock: Clock | None = None
    number: int = 0
    metadata: int = 0
    """The length of all their metadata, in characters."""
    number_limit: StateLimit = field(init=False)
    metadata_limit: StateLimit = field(init=False)

    def __post_init__(self) -> None:
        self.number_limit = StateLimit(
            "offsets", "offsets.max", self.max_offsets, lambda: self.number, self.clock
        )
        self.metadata_limit = StateLimit(
            "characters of offset metadata",
            "offsets.metadata.max.bytes",
            self.max_metadata,
            lambda: self.metadata,
            self.clock,
        )

    def put(self, offsets: Offsets, changed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Add or replace offsets."""
        present, metadata = len(offsets), 0
        for partition, offset in changed.items():
            if partition in offsets:
                metadata -= len(offsets[partition].metadata)
            metadata += len(offset.metadata)
        offsets.update(changed)
        self.number += len(offsets) - present
        self.metadata += metadata

    def remove(self, offsets: Offsets, partitions: Iterable[TopicPartition]) -> None:
        """Remove offsets that exist."""
        for partition in partitions:
            self.number -= 1
            self.metadata -= len(offsets.pop(partition).metadata)


@dataclass(slots=True)
class OffsetRoom:
    """The room for the offsets of one request."""

    total: OffsetTotal
    known: Mapping[TopicPartition, CommittedOffset]
    """The offsets that the request may replace."""
    added: int = 0
    metadata: int = 0

    def take(self, partition: TopicPartition, metadata: str) -> None:
        """Take the room of one offset.

        Raises:
            ApiError: POLICY_VIOLATION: there is none. An offset that replaces another one needs none, unless
                it has longer metadata.
        """
        before = self.known.get(partition)
        longer = len(metadata)
        if before is None:
            self.total.number_limit.check(self.added + 1)
            self.added += 1
        else:
            longer -= len(before.metadata)
        if longer > 0:
            self.total.metadata_limit.check(self.metadata + longer)
            self.metadata += longer
