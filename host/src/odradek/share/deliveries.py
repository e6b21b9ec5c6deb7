"""The share partitions in memory: loaded on first use, stored with each change, unlocked in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from odradek.share.acknowledgement import NAMES, Acknowledgement
from odradek.share.acquisition import Limits
from odradek.share.share_partition import SharePartition
from odradek.share.span import packed, unpacked
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.wire.api_error import ApiError

NOT_STARTED: Final = -1
"""The start offset of a partition that nobody has fetched from yet."""

PartitionKey = tuple[bytes, int]
"""Topic id and index."""


StateRow = tuple[str, bytes, int, int, int, bytes]
"""Group, topic id, index, the start offset before the last change or `NOT_STARTED`, how many records from
there on are done, and the spans."""


class StateStore(Protocol):
    """Keeps the states through the end of the process."""

    def share_partition(self, group_id: str, topic_id: bytes, partition: int) -> StateRow | None:
        """A state; None if the group does not know the partition."""

    def put_share_partitions(self, rows: Iterable[StateRow]) -> None:
        """Store states, all or none.

        Raises:
            ApiError: They cannot be written now.
        """


@dataclass(slots=True, eq=False)
class Delivery:
    """The delivery of one partition to one group."""

    group_id: str
    key: PartitionKey
    partition: SharePartition
    is_started: bool
    """Whether the start offset is known."""
    stored_ms: int = 0
    """When the state was stored last, or loaded; wall time."""
    unlocking: TimerTask | None = None
    """Runs when the first lock ends, or earlier."""
    is_burying: bool = False
    """Whether records that were given up are being written to a topic."""

    @property
    def row(self) -> StateRow:
        """The state to store."""
        partition = self.partition
        return (self.group_id, *self.key, partition.start, partition.done, packed(partition.stored()))

    def forget_locks(self) -> None:
        """Stop waiting for the end of locks."""
        if self.unlocking is not None:
            self.unlocking.cancel()
            self.unlocking = None


@dataclass(slots=True, eq=False)
class Deliveries:
    """All share partitions in use.

    A change is stored before it is answered. If that fails, the partition is loaded again on its next use, so
    that members and the store never disagree: what was held is delivered once more.

    Args:
        store: Keeps the states.
        clock: The time.
        timer: Ends locks.
        limits_of: The settings of a group.
        bury: Begins to write what a partition has given up to a topic.
    """

    store: StateStore
    clock: Clock
    timer: Timer
    limits_of: Callable[[str], Limits]
    bury: Callable[[Delivery], None] = lambda _delivery: None
    groups: dict[str, dict[PartitionKey, Delivery]] = field(default_factory=dict)
    acquired: int = 0
    """Records given to members since the start."""
    acknowledged: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(NAMES, 0)))
    """Records about which members said something, by what they said."""
    expired: int = 0
    """Records whose locks ended."""
    exhausted: int = 0
    """Records that were given up because they were delivered too often."""

    def __len__(self) -> int:
        return sum(map(len, self.groups.values()))

    @property
    def in_flight(self) -> int:
        """The records between the start offsets and the next ones."""
        return sum(each.next - each.start for each in self.partitions())

    @property
    def given_up(self) -> int:
        """The records that have to be written to dead-letter topics."""
        return sum(lot.records for each in self.partitions() for lot in each.given_up)

    def partitions(self) -> Iterator[SharePartition]:
        return (each.partition for group in self.groups.values() for each in group.values())

    def get(self, group_id: str, key: PartitionKey) -> Delivery | None:
        """The delivery of a partition; None if the group does not know it."""
        known = self.groups.get(group_id, {}).get(key)
        if known is not None:
            return known
        row = self.store.share_partition(group_id, *key)
        if row is None:
            return None
        start, spans = row[3], row[5]
        partition = SharePartition.restored(max(start, 0), unpacked(spans))
        partition.find_given_up(self.limits_of(group_id))
        delivery = Delivery(group_id, key, partition, start != NOT_STARTED, self.clock.now_ms())
        self.groups.setdefault(group_id, {})[key] = delivery
        if partition.given_up:
            self.bury(delivery)
        return delivery

    def is_current(self, delivery: Delivery) -> bool:
        """Whether a delivery is still the one of its partition."""
        return self.groups.get(delivery.group_id, {}).get(delivery.key) is delivery

    def start(self, delivery: Delivery, offset: int) -> None:
        """Begin the delivery of a partition at an offset.

        Raises:
            ApiError: It cannot be stored.
        """
        delivery.partition = SharePartition.restored(offset)
        self.settle([delivery])
        delivery.is_started = True

    def locked(self, delivery: Delivery, limits: Limits, records: int) -> None:
        """Unlock records that were just acquired when their time ends."""
        self.acquired += records
        deadline_ms, task = self.clock.monotonic_ms() + limits.lock_ms, delivery.unlocking
        if task is None or task.deadline_ms > deadline_ms:
            delivery.forget_locks()
            delivery.unlocking = self.timer.schedule(deadline_ms, lambda: self.unlock(delivery))

    def unlock(self, delivery: Delivery) -> None:
        """Release the records whose locks have ended, and wait for the next."""
        delivery.unlocking = None
        now_ms = self.clock.monotonic_ms()
        expired = delivery.partition.expire(self.limits_of(delivery.group_id), now_ms)
        self.expired += expired
        if expired:
            self.settle_quietly([delivery])
        next_ms = delivery.partition.next_deadline_ms
        if next_ms is not None and self.is_current(delivery):
            delivery.unlocking = self.timer.schedule(next_ms, lambda: self.unlock(delivery))

    def acknowledge(
        self, delivery: Delivery, member_id: str, words: Sequence[Acknowledgement], now_ms: int
    ) -> bool:
        """Take the words of a member; see `SharePartition.acknowledge`. The caller settles what has changed.

        Raises:
            ApiError: They are refused.
        """
        limits = self.limits_of(delivery.group_id)
        changed = delivery.partition.acknowledge(member_id, words, limits, now_ms)
        for first, last, kind in words:
            self.acknowledged[NAMES[kind]] += last - first + 1
        return changed

    def release(self, member_id: str, deliveries: Iterable[Delivery]) -> None:
        """Release everything that a member holds."""
        changed = [
            each
            for each in deliveries
            if self.is_current(each) and each.partition.release(member_id, self.limits_of(each.group_id))
        ]
        self.settle_quietly(changed)

    def settle(self, deliveries: Sequence[Delivery]) -> None:
        """Store changed states, move the start offsets, and wake those that wait for records.

        Raises:
            ApiError: They cannot be stored.
        """
        deliveries = [each for each in deliveries if self.is_current(each)]
        if not deliveries:
            return
        try:
            # before the start offset moves, as Kafka does
            self.store.put_share_partitions([each.row for each in deliveries])
        except ApiError:
            for each in deliveries:
                self.drop(each)
            raise
        now_ms = self.clock.now_ms()
        for each in deliveries:
            each.stored_ms = now_ms
            self.exhausted += each.partition.exhausted
            each.partition.exhausted = 0
            if each.partition.advanced(self.limits_of(each.group_id)):
                each.partition.tell()
            if each.partition.given_up:
                self.bury(each)

    def settle_quietly(self, deliveries: Sequence[Delivery]) -> None:
        """The same where nobody waits for an answer; the store has logged its failure."""
        try:
            self.settle(deliveries)
        except ApiError:
            return

    def drop(self, delivery: Delivery) -> None:
        """Forget a delivery: the stored state counts from now on."""
        delivery.forget_locks()
        group = self.groups.get(delivery.group_id, {})
        if group.get(delivery.key) is delivery:
            del group[delivery.key]
            if not group:
                del self.groups[delivery.group_id]
        delivery.partition.tell()

    def forget(self, group_id: str, keys: Iterable[PartitionKey] | None) -> None:
        """Drop some deliveries of a group, or all: their states were changed by others."""
        group = self.groups.get(group_id, {})
        for key in list(group if keys is None else keys):
            if key in group:
                self.drop(group[key])
