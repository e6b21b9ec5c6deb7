"""A committed offset and its partition."""

from __future__ import annotations

from dataclasses import dataclass

TopicPartition = tuple[bytes, int]
"""Topic id and partition index. By id, so that a re-created topic starts without offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """A committed offset; after OffsetAndMetadata.java."""

    offset: int
    leader_epoch: int = -1
    """-1 if unknown."""
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int | None = None
    """Set by OffsetCommit v2 to v4, which may have a retention time; else None."""
