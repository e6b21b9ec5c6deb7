"""Fetch sessions (KIP-227): a client names its partitions once, and responses carry only changes.

After FetchSession.java and FetchSessionCacheShard (Kafka 4.3), with one shard and without the sessions of
followers, which Kafka evicts last.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from odradek.broker.broker_settings import PARTITIONS_KEY, SLOTS_KEY
from odradek.settings.state_limit import StateLimit
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.fetch import FetchPartition, ForgottenTopic, PartitionData

MIN_EVICTION_MS = 120_000
"""MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS: within this time a session cannot be evicted for a
larger or a newer one."""
NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Epochs of requests that name all their partitions: the first opens a session, the second closes it or has
none."""
UNKNOWN = -1

PartitionKey = tuple[str | bytes, int]
"""Name or id of the topic, depending on the version of the request, and the partition index."""


@dataclass(slots=True)
class CachedPartition:
    """One partition that a client reads, with the state last sent to it."""

    topic: str | None
    """None if the request has an unknown topic id."""
    topic_id: bytes
    wanted: FetchPartition
    high_watermark: int = UNKNOWN
    log_start_offset: int = UNKNOWN

    def remember(self, answer: PartitionData) -> None:
        """Remember the state sent to the client. After an error, the next response always names the
        partition.
        """
        self.high_watermark = UNKNOWN if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset

    def differs(self, answer: PartitionData) -> bool:
        """Whether a response must name the partition."""
        return bool(
            answer.records
            or answer.error_code
            or answer.diverging_epoch.epoch >= 0
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )


def next_epoch(epoch: int) -> int:
    """The epoch after this one. Epochs count from 1 and wrap around to 1."""
    return 1 if epoch == INT32_MAX else epoch + 1


@dataclass(slots=True, eq=False)
class FetchSession:
    """The partitions that one client reads, ordered so that those with the latest records come last."""

    id: int
    uses_topic_ids: bool
    created_ms: int
    partitions: dict[PartitionKey, CachedPartition]
    last_used_ms: int = 0
    epoch: int = INITIAL_EPOCH + 1
    """The epoch of the next expected request."""
    cached_size: int = 0
    """Number of partitions that the cache counts for this session."""

    def update(
        self, changed: Mapping[PartitionKey, CachedPartition], forgotten: Iterable[PartitionKey]
    ) -> None:
        """Apply the changes of an incremental request."""
        for key, partition in changed.items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = partition
            else:
                known.wanted = partition.wanted
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, key: PartitionKey) -> None:
        """Move a partition that had records to the end, so that the others get their turn."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


def forgotten_keys(topics: Iterable[ForgottenTopic], uses_topic_ids: bool) -> list[PartitionKey]:
    """The partitions that a request removes from its session."""
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, index)
        for topic in topics
        for index in topic.partitions
    ]


@dataclass(slots=True, eq=False)
class FetchSessionCache:
    """All sessions of the host, at most ``slots``.

    If all slots are taken, a new session replaces the least recently used one, provided that it was idle for
    more than two minutes; else the smallest one that is older than two minutes, provided that it is smaller
    than the new one. A client that gets no session works without.

    Args:
        slots: ``max.incremental.fetch.session.cache.slots``.
        random_id: A random number from 1 to 2**31 - 2, so that session ids cannot be guessed.
        max_partitions: ``fetch.session.partitions.max``.
    """

    slots: int
    random_id: Callable[[], int]
    max_partitions: int
    sessions: dict[int, FetchSession] = field(default_factory=dict)
    """Least recently used first."""
    evictable: list[tuple[int, int]] = field(default_factory=list)
    """Size and id of sessions older than two minutes, smallest first."""
    partitions: int = 0
    """Number of partitions in all sessions."""

    def __len__(self) -> int:
        return len(self.sessions)

    @property
    def limits(self) -> list[StateLimit]:
        """For the metrics only: a client that gets no session is not refused."""
        return [
            StateLimit("fetch sessions", SLOTS_KEY, self.slots, self.__len__),
            StateLimit(
                "partitions in fetch sessions", PARTITIONS_KEY, self.max_partitions, lambda: self.partitions
            ),
        ]

    def open(
        self, partitions: Mapping[PartitionKey, CachedPartition], uses_topic_ids: bool, now_ms: int
    ) -> int:
        """Open a session and return its id; 0 if there is no room for it."""
        if not self.make_room(len(partitions), now_ms):
            return NO_SESSION
        session = FetchSession(self.fresh_id(), uses_topic_ids, now_ms, dict(partitions))
        self.sessions[session.id] = session
        self.touch(session, now_ms)
        return session.id

    def fresh_id(self) -> int:
        """An unused session id."""
        while True:
            candidate = self.random_id()
            if candidate not in self.sessions:
                return candidate

    def make_room(self, size: int, now_ms: int) -> bool:
        """Whether a session of this size fits; evicts another one if needed."""
        if self.partitions + size > self.max_partitions:
            return False
        return len(self.sessions) < self.slots or self.evict(size, now_ms)

    def evict(self, size: int, now_ms: int) -> bool:
        """Evict a session for one of this size; False if none may be evicted."""
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
        """Record the use of a session and its current size."""
        self.sessions[session.id] = self.sessions.pop(session.id)
        session.last_used_ms = now_ms
        size = len(session.partitions)
        self.forget_size(session)
        self.partitions += size
        session.cached_size = size
        if now_ms - session.created_ms > MIN_EVICTION_MS:
            insort(self.evictable, (size, session.id))

    def forget_size(self, session: FetchSession) -> None:
        """Remove the size of a session from the totals."""
        self.partitions -= session.cached_size
        entry = (session.cached_size, session.id)
        at = bisect_left(self.evictable, entry)
        if at < len(self.evictable) and self.evictable[at] == entry:
            del self.evictable[at]

    def remove(self, session_id: int) -> None:
        """Close a session if it exists."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self.forget_size(session)
