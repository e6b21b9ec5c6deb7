"""The registry of groups of both protocols.

The protocols themselves are elsewhere: `classic_protocol` answers JoinGroup, SyncGroup, Heartbeat and
LeaveGroup; `consumer_group` the heartbeats of KIP-848. Both find, make and replace groups here. Committed
offsets are in `GroupOffsets`, by group id, whatever the type of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from odradek.clock import Clock, Timer
from odradek.group.classic_group import ClassicGroup
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group import Group, GroupType
from odradek.group.group_config import GroupConfig
from odradek.group.group_offsets import GroupOffsets, GroupRow
from odradek.group.topic_view import TopicView
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


@dataclass(slots=True, eq=False)
class GroupCoordinator:
    """All groups of the host, one per id."""

    config: GroupConfig
    clock: Clock
    timer: Timer
    random_uuid: Callable[[], bytes]
    offsets: GroupOffsets
    topics: TopicView
    groups: dict[str, Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.offsets.store.groups():
            self.groups[row[0]] = self.restored(row)
        for group_id in self.offsets.committed:
            self.groups.setdefault(group_id, ClassicGroup(group_id))

    def restored(self, row: GroupRow) -> Group:
        """A group as it comes back after a restart: empty."""
        group_id, group_type, protocol_type, generation, empty_since_ms = row
        if group_type == GroupType.CONSUMER:
            return self.consumer_group(group_id, generation, empty_since_ms)
        return ClassicGroup(
            group_id, protocol_type=protocol_type, generation=generation, empty_since_ms=empty_since_ms
        )

    def consumer_group(
        self, group_id: str, generation: int, empty_since_ms: int | None = None
    ) -> ConsumerGroup:
        """A group of the consumer protocol, empty and not registered."""
        return ConsumerGroup(
            group_id,
            config=self.config,
            clock=self.clock,
            timer=self.timer,
            topics=self.topics,
            generation=generation,
            empty_since_ms=empty_since_ms,
            emptied=self.save,
        )

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups.values())

    def group(self, group_id: str) -> Group:
        """The group of this id.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def put(self, group: Group) -> None:
        """A new group, or one in the place of an empty one of the same id; stored when this returns."""
        before = self.groups.get(group.group_id)
        if before is not None and before is not group:
            before.close()
        self.groups[group.group_id] = group
        self.save(group)

    def save(self, group: Group) -> None:
        """Store what of a group survives a restart: its type, its generation and since when it is empty.

        Members do not survive: they are told UNKNOWN_MEMBER_ID and join again.
        """
        self.offsets.store.put_group(
            (
                group.group_id,
                str(group.group_type),
                group.protocol_type,
                group.generation,
                group.empty_since_ms,
            )
        )

    def remove(self, group_id: str) -> None:
        """Forget a group and all its offsets."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            group.close()
        self.offsets.delete_group(group_id)

    def topics_changed(self) -> None:
        """Topics were created or deleted, or have got more partitions.

        Offsets of a topic that is gone go with it.
        """
        self.offsets.drop_topics(lambda topic_id: self.topics.topic_name(topic_id) is not None)
        for group in list(self.groups.values()):
            group.topics_changed()

    def close(self) -> None:
        """Cancel every timer."""
        for group in self.groups.values():
            group.close()
