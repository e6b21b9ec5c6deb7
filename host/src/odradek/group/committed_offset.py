"""One committed offset and where it belongs."""

from __future__ import annotations

from dataclasses import dataclass

TopicPartition = tuple[bytes, int]
"""Topic id and partition index: a new topic under an old name has no offsets yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """After OffsetAndMetadata.java."""

    offset: int
    leader_epoch: int = -1
    """-1: unknown."""
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int | None = None
    """Only from OffsetCommit v2 to v4, which may ask for a retention time."""
