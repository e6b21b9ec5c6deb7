"""Committed offsets of all groups, in memory and in an `OffsetStore`.

Also the pending offsets of transactions, which are not visible until the transaction commits
(TxnOffsetCommit).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.offset_total import OffsetRoom, Offsets, OffsetTotal
from odradek.group.share_store import ShareStore

OffsetRow = tuple[str, bytes, int, int, int, str, int, int | None]
"""Group, topic id, partition, offset, leader epoch, metadata, commit time, expiry time (or None)."""
PendingRow = tuple[int, OffsetRow]
"""A producer id and a pending offset of its transaction."""
OffsetKey = tuple[str, bytes, int]
"""Group, topic id, partition."""
PendingKey = tuple[int, OffsetKey]
"""A producer id and an `OffsetKey`."""
GroupRow = tuple[str, str, str, int, int | None]
"""Group, type, protocol type, generation, empty since (or None)."""
GroupStateRow = tuple[str, str]
"""Group, and its state as JSON."""
MemberRow = tuple[str, str, str]
"""Group, member, and the state of the member as JSON."""


class OffsetStore(Protocol):
    """Durable storage of offsets and groups. Each call is one transaction, or a part of an open one."""

    @property
    def shares(self) -> ShareStore:
        """The tables of share groups."""

    def transaction(self) -> AbstractContextManager[object]:
        """Let all calls of the block be one transaction."""

    def offsets(self) -> Iterable[OffsetRow]:
        """All committed offsets."""

    def pending(self) -> Iterable[PendingRow]:
        """All offsets of open transactions."""

    def groups(self) -> Iterable[GroupRow]:
        """All groups."""

    def group_states(self) -> Iterable[GroupStateRow]:
        """What is stored of groups that are kept with their members."""

    def group_members(self) -> Iterable[MemberRow]:
        """The members of these groups."""

    def put_offsets(self, rows: Iterable[OffsetRow], superseded: Iterable[PendingKey] = ()) -> None:
        """Set committed offsets and delete the pending offsets that they supersede."""

    def delete_offsets(self, keys: Iterable[OffsetKey]) -> None:
        """Delete committed offsets."""

    def put_pending(self, rows: Iterable[PendingRow]) -> None:
        """Set offsets of open transactions."""

    def complete(self, producer_id: int, group_id: str, committed: Iterable[OffsetRow]) -> None:
        """Complete a transaction: delete its pending offsets and set the committed ones (none if it was
        aborted).
        """

    def delete_topics(self, topic_ids: Sequence[bytes]) -> None:
        """Delete all offsets of topics, pending ones too."""

    def put_group(
        self,
        row: GroupRow,
        state: str | None = None,
        members: Iterable[MemberRow] = (),
        gone: Iterable[str] = (),
    ) -> None:
        """Set one group and the members that have changed, and delete those that have left."""

    def delete_group(self, group_id: str) -> None:
        """Delete a group with its members, all its offsets and the delivery states of a share group."""


def offset_row(group_id: str, partition: TopicPartition, offset: CommittedOffset) -> OffsetRow:
    """The stored form of an offset."""
    return (
        group_id,
        *partition,
        offset.offset,
        offset.leader_epoch,
        offset.metadata,
        offset.commit_timestamp_ms,
        offset.expire_timestamp_ms,
    )


def offset_of_row(row: OffsetRow) -> CommittedOffset:
    """The offset from its stored form."""
    _, _, _, offset, leader_epoch, metadata, commit_ms, expire_ms = row
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_ms,
        expire_timestamp_ms=expire_ms,
    )


@dataclass(slots=True)
class GroupOffsets:
    """All committed offsets. Clients are checked elsewhere, by `Group.validate_offset_commit`."""

    store: OffsetStore
    appeared: Callable[[str], None] = lambda _group_id: None
    """Called with the id of each group that has offsets, committed or pending, when it gets the first."""
    committed: dict[str, Offsets] = field(default_factory=dict)
    """By group id."""
    open_transactions: dict[str, dict[int, Offsets]] = field(default_factory=dict)
    """Pending offsets of open transactions, by group id and producer id."""
    groups_of_topic: dict[bytes, set[str]] = field(default_factory=dict)
    """The groups that have committed or pending offsets of a topic, by topic id."""
    total: OffsetTotal = field(default_factory=OffsetTotal)
    owned: dict[str, Callable[[Mapping[TopicPartition, CommittedOffset]], None]] = field(default_factory=dict)
    """Groups in which the host itself consumes, by group id. No client may join or delete them. If a
    client commits offsets, the function is called with them, and the host continues there.
    """

    def __post_init__(self) -> None:
        for row in self.store.offsets():
            self.remember(row[0], {(row[1], row[2]): offset_of_row(row)})
        for producer_id, row in self.store.pending():
            self.hold(producer_id, row[0], {(row[1], row[2]): offset_of_row(row)})

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit offsets, all or none; they are stored when this returns.

        Pending offsets of the same partitions are dropped: they are older, and the later record wins, as in
        Kafka.
        """
        superseded = [
            (producer_id, (group_id, *partition))
            for producer_id, pending in self.open_transactions.get(group_id, {}).items()
            for partition in offsets.keys() & pending.keys()
        ]
        self.store.put_offsets([offset_row(group_id, *item) for item in offsets.items()], superseded)
        for producer_id, (_, topic_id, partition) in superseded:
            self.total.remove(self.open_transactions[group_id][producer_id], [(topic_id, partition)])
        self.remember(group_id, offsets)

    def remember(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        if group_id not in self.committed:
            self.appeared(group_id)
        self.total.put(self.committed.setdefault(group_id, {}), offsets)
        self.index(group_id, offsets)

    def index(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        for topic_id, _ in partitions:
            self.groups_of_topic.setdefault(topic_id, set()).add(group_id)

    def unindex(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Update the index after offsets were deleted. The group may have others of the same topics."""
        gone = {topic_id for topic_id, _ in partitions}
        for offsets in (self.committed.get(group_id, {}), *self.open_transactions.get(group_id, {}).values()):
            if not gone:
                return
            gone.difference_update(topic_id for topic_id, _ in offsets)
        for topic_id in gone & self.groups_of_topic.keys():
            self.groups_of_topic[topic_id].discard(group_id)
            if not self.groups_of_topic[topic_id]:
                del self.groups_of_topic[topic_id]

    def room(self, group_id: str, producer_id: int | None = None) -> OffsetRoom:
        """The room for new offsets of a group, committed or in a producer's transaction."""
        if producer_id is None:
            return OffsetRoom(self.total, self.committed.get(group_id, {}))
        return OffsetRoom(self.total, self.open_transactions.get(group_id, {}).get(producer_id, {}))

    def offset(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The committed offset of a partition, or None."""
        return self.committed.get(group_id, {}).get(partition)

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self.committed.get(group_id, {})

    def has_any(self, group_id: str) -> bool:
        """Whether a group has committed or pending offsets."""
        return bool(self.committed.get(group_id)) or self.has_pending(group_id)

    def has_pending(self, group_id: str, partition: TopicPartition | None = None) -> bool:
        """Whether an open transaction has a pending offset of this partition (None: of any) for the group.

        An OffsetFetch that requires stable offsets then gets UNSTABLE_OFFSET_COMMIT.
        """
        transactions = self.open_transactions.get(group_id)
        if not transactions:
            return False
        return partition is None or any(partition in offsets for offsets in transactions.values())

    def add_pending(
        self, producer_id: int, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Add offsets to the producer's open transaction; they are stored when this returns."""
        self.store.put_pending([(producer_id, offset_row(group_id, *item)) for item in offsets.items()])
        self.hold(producer_id, group_id, offsets)

    def hold(
        self, producer_id: int, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        self.appeared(group_id)
        pending = self.open_transactions.setdefault(group_id, {}).setdefault(producer_id, {})
        self.total.put(pending, offsets)
        self.index(group_id, offsets)

    def complete(self, producer_id: int, group_id: str, committed: bool) -> None:
        """End the producer's transaction for a group. Does nothing if it has no offsets of this group.

        A plain commit in the meantime has superseded pending offsets, see `commit`.
        """
        transactions = self.open_transactions.get(group_id, {})
        pending = transactions.get(producer_id)
        if pending is None:
            return
        self.store.complete(
            producer_id,
            group_id,
            [offset_row(group_id, *item) for item in pending.items()] if committed else [],
        )
        ended = dict(pending)
        self.total.remove(pending, ended)
        del transactions[producer_id]
        if not transactions:
            del self.open_transactions[group_id]
        if committed:
            self.remember(group_id, ended)
        else:
            self.unindex(group_id, ended)

    def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> int:
        """Delete committed offsets; return how many there were."""
        offsets = self.committed.get(group_id, {})
        known = [partition for partition in dict.fromkeys(partitions) if partition in offsets]
        if known:
            self.store.delete_offsets([(group_id, *partition) for partition in known])
        self.total.remove(offsets, known)
        if not offsets:
            self.committed.pop(group_id, None)
        self.unindex(group_id, known)
        return len(known)

    def delete_group(self, group_id: str) -> int:
        """Delete a group with all its offsets, pending ones too; return how many were committed."""
        self.store.delete_group(group_id)
        pending = self.open_transactions.pop(group_id, {})
        committed = self.committed.pop(group_id, {})
        deleted = [(offsets, list(offsets)) for offsets in (committed, *pending.values())]
        for offsets, partitions in deleted:
            self.total.remove(offsets, partitions)
            self.unindex(group_id, partitions)
        return len(deleted[0][1])

    def drop_topics(self, exists: Callable[[bytes], bool]) -> None:
        """Delete the offsets of topics that no longer exist."""
        gone = [topic_id for topic_id in self.groups_of_topic if not exists(topic_id)]
        if not gone:
            return
        self.store.delete_topics(gone)
        for topic_id in gone:
            for group_id in self.groups_of_topic.pop(topic_id):
                self.forget_topic(group_id, topic_id)

    def forget_topic(self, group_id: str, topic_id: bytes) -> None:
        for offsets in (self.committed.get(group_id, {}), *self.open_transactions.get(group_id, {}).values()):
            self.total.remove(offsets, [partition for partition in offsets if partition[0] == topic_id])
        if not self.committed.get(group_id):
            self.committed.pop(group_id, None)
