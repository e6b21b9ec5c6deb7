"""Fetch sessions (KIP-227): a client says once what it reads, and is told only what has changed.

After FetchSession.java and FetchSessionCacheShard (Kafka 4.3), for one shard and without followers, whose
sessions Kafka evicts last.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.fetch import FetchPartition, ForgottenTopic, PartitionData

MIN_EVICTION_MS = 120_000
"""MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS: so long a session is safe from smaller and busier ones."""
MAX_CACHED_PARTITIONS = 500_000
"""Of all sessions: some 150 MB. Kafka has no such bound."""
NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Of requests that name all their partitions: one opens a session, the other closes it or has none."""
UNKNOWN = -1

PartitionKey = tuple[str | bytes, int]
"""Name or id of the topic, as the version of the request has it, and the partition's index."""


@dataclass(slots=True)
class CachedPartition:
    """One partition that a client reads, and what it was told last."""

    topic: str | None
    """None where the request gives an id that no topic has."""
    topic_id: bytes
    wanted: FetchPartition
    high_watermark: int = UNKNOWN
    log_start_offset: int = UNKNOWN

    def remember(self, answer: PartitionData) -> None:
        """Take over what the client is told. After an error it is told the end of it, whatever that is."""
        self.high_watermark = UNKNOWN if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset

    def differs(self, answer: PartitionData) -> bool:
        """Whether the client has to hear this answer."""
        return bool(
            answer.records
            or answer.error_code
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )


def next_epoch(epoch: int) -> int:
    """Epochs of a session count from 1 and begin there again after the largest."""
    return 1 if epoch == INT32_MAX else epoch + 1


@dataclass(slots=True, eq=False)
class FetchSession:
    """What one client reads. In ``partitions`` those that were answered last come last."""

    id: int
    uses_topic_ids: bool
    created_ms: int
    partitions: dict[PartitionKey, CachedPartition]
    last_used_ms: int = 0
    epoch: int = INITIAL_EPOCH + 1
    """Of the request that is expected next."""
    cached_size: int = 0
    """Number of partitions that the cache counts for this session."""

    def update(
        self, changed: Mapping[PartitionKey, CachedPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Carry out what an incremental request says."""
        for key, partition in changed.items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = partition
            else:
                known.wanted = partition.wanted
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """A partition that had records waits until all others had their turn."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


def forgotten_keys(topics: Iterable[ForgottenTopic], uses_topic_ids: bool) -> list[PartitionKey]:
    """What a request takes out of its session."""
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, index)
        for topic in topics
        for index in topic.partitions
    ]


@dataclass(slots=True, eq=False)
class FetchSessionCache:
    """All sessions of the host, at most ``slots``.

    When all slots are taken a new session replaces the one that was silent the longest, if that is more than
    two minutes, or else the smallest that is older than two minutes, if that is smaller. A client that gets
    none works without.

    Args:
        slots: ``max.incremental.fetch.session.cache.slots``.
        random_id: Draws from 1 to 2**31 - 2: ids of sessions cannot be guessed.
    """

    slots: int
    random_id: Callable[[], int]
    max_partitions: int = MAX_CACHED_PARTITIONS
    sessions: dict[int, FetchSession] = field(default_factory=dict)
    """Least recently used first."""
    evictable: list[tuple[int, int]] = field(default_factory=list)
    """Size and id of sessions older than two minutes, smallest first."""
    partitions: int = 0
    """Of all sessions."""

    def __len__(self) -> int:
        return len(self.sessions)

    def open(
        self, partitions: Mapping[PartitionKey, CachedPartition], uses_topic_ids: bool, now_ms: int
    ) -> int:
        """A new session's id; 0 if there is no room for it."""
        if not self.make_room(len(partitions), now_ms):
            return NO_SESSION
        session = FetchSession(self.fresh_id(), uses_topic_ids, now_ms, dict(partitions))
        self.sessions[session.id] = session
        self.touch(session, now_ms)
        return session.id

    def fresh_id(self) -> int:
        """An id that no session has."""
        while True:
            candidate = self.random_id()
            if candidate not in self.sessions:
                return candidate

    def make_room(self, size: int, now_ms: int) -> bool:
        """Whether a session of so many partitions fits, after an eviction if need be."""
        if self.partitions + size > self.max_partitions:
            return False
        return len(self.sessions) < self.slots or self.evict(size, now_ms)

    def evict(self, size: int, now_ms: int) -> bool:
        """Make a slot free for a session of so many partitions, if any may go."""
        oldest = next(iter(self.sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > MIN_EVICTION_MS:
            victim = oldest.id
        elif self.evictable and self.evictable[0][0] < size:
            victim = self.evictable[0][1]
        else:
            return False
        self.remove(victim)
        return True

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """A session is used, and may have another size than before."""
        self.sessions[session.id] = self.sessions.pop(session.id)
        session.last_used_ms = now_ms
        size = len(session.partitions)
        self.forget_size(session)
        self.partitions += size
        session.cached_size = size
        if now_ms - session.created_ms > MIN_EVICTION_MS:
            insort(self.evictable, (size, session.id))

    def forget_size(self, session: FetchSession) -> None:
        """Count a session no longer."""
        self.partitions -= session.cached_size
        entry = (session.cached_size, session.id)
        at = bisect_left(self.evictable, entry)
        if at < len(self.evictable) and self.evictable[at] == entry:
            del self.evictable[at]

    def remove(self, session_id: int) -> None:
        """Close a session, if it is there."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self.forget_size(session)
