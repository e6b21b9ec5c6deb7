"""Start offsets of share groups, as an operator reads, sets and deletes them (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.group.committed_offset import TopicPartition
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.share_group import ShareGroup
from odradek.group.share_protocol import share_group
from odradek.group.share_store import UNINITIALIZED, SharePartitionRow
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

NOTHING_TO_DELETE = "There is no offset information to delete."


def position(
    coordinator: GroupCoordinator, group_id: str, partition: TopicPartition
) -> tuple[int, int] | None:
    """The start offset of a partition, and how many records from there on are done; None if nothing of it was
    delivered.
    """
    row = coordinator.shares.store.share_partition(group_id, *partition)
    if row is None or row[3] == UNINITIALIZED:
        return None
    return row[3], row[4]


def known_partitions(coordinator: GroupCoordinator, group_id: str) -> Mapping[bytes, set[int]]:
    """The partitions that a group may read, by topic id; none if it is no share group."""
    group = coordinator.groups.get(group_id)
    return group.known if isinstance(group, ShareGroup) else {}


def group_to_alter(coordinator: GroupCoordinator, group_id: str) -> ShareGroup:
    """The group whose offsets are set; a new one, not registered yet, if there is none.

    Raises:
        ApiError: INVALID_GROUP_ID; GROUP_ID_NOT_FOUND: it is of another type; NON_EMPTY_GROUP: it has
            members; POLICY_VIOLATION: there are too many groups.
    """
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)
    coordinator.check_not_owned(group_id)
    if group_id in coordinator.groups:
        group = share_group(coordinator, group_id)
        group.validate_delete()
        return group
    coordinator.groups_limit.check()
    return coordinator.share_group(group_id)


def alter(coordinator: GroupCoordinator, group: ShareGroup, offsets: Mapping[TopicPartition, int]) -> None:
    """Set start offsets; they hold from the next fetch on. A new group is registered.

    Raises:
        ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be written now; nothing has changed.
    """
    rows: list[SharePartitionRow] = [
        (group.group_id, *partition, offset, 0, b"") for partition, offset in offsets.items()
    ]
    with coordinator.store.transaction():
        if group.group_id not in coordinator.groups:
            coordinator.save(group)
        coordinator.shares.store.put_share_partitions(rows)
    if group.group_id not in coordinator.groups:
        coordinator.replace(group)
    group.learn(offsets)
    coordinator.shares.dropped(group.group_id, offsets)


def delete(coordinator: GroupCoordinator, group: ShareGroup, topic_id: bytes) -> bool:
    """Delete the start offsets of a topic; return False if there are none.

    Raises:
        ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be written now; nothing has changed.
    """
    partitions = [(topic_id, index) for index in group.known.get(topic_id, ())]
    coordinator.shares.store.delete_share_partitions([(group.group_id, *each) for each in partitions])
    group.forget(partitions)
    coordinator.shares.dropped(group.group_id, partitions)
    return bool(partitions)
