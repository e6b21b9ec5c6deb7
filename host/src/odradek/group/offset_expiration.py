"""Expiration of committed offsets, and of groups without members and offsets.

After OffsetMetadataManager.cleanupExpiredOffsets and OffsetExpirationConditionImpl.java.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from odradek.group.classic_state import ClassicState
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.group import GroupType
from odradek.group.group_coordinator import Group, GroupCoordinator
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

OFFSETS_PER_STEP = 2_000
"""How many offsets one step inspects before other work gets its turn."""
REMOVAL = 50
"""The cost of removing a group, in inspected offsets: it is a write to the store."""


class OffsetExpiration:
    """Inspects all groups every ``offsets.retention.check.interval.ms``, a few per step."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self.groups = groups
        self.left: list[str] = []
        """Groups that are left in this round."""

    def start(self) -> None:
        """Schedule the first round, after one interval."""
        self.schedule(self.groups.config.offsets_retention_check_interval_ms)

    def schedule(self, delay_ms: int) -> None:
        self.groups.timer.schedule(self.groups.clock.monotonic_ms() + delay_ms, self.step)

    def step(self) -> None:
        """Inspect some groups; the round ends when none are left."""
        if not self.left:
            self.left = list(self.groups.groups)
        looked_at = 0
        while self.left and looked_at < OFFSETS_PER_STEP:
            group_id = self.left.pop()
            looked_at += 1 + len(self.groups.offsets.of_group(group_id))
            try:
                looked_at += REMOVAL * self.expire(group_id)
            except ApiError as error:
                log.warning(
                    "cannot expire the offsets of a group: the next round tries again",
                    extra={"group": group_id, "error": str(error)},
                )
        self.schedule(1 if self.left else self.groups.config.offsets_retention_check_interval_ms)

    def expire(self, group_id: str) -> bool:
        """Delete expired offsets, and the group if it is empty and has no offsets left; return whether the
        group was deleted.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be written now.
        """
        group = self.groups.groups.get(group_id)
        if group is None or group.group_type is GroupType.SHARE or group_id in self.groups.offsets.owned:
            return False
        offsets = self.groups.offsets
        expired = list(self.expired(group, offsets.of_group(group_id).items()))
        if expired:
            offsets.delete(group_id, expired)
        if group.is_empty and not offsets.has_any(group_id):
            self.groups.remove(group_id)
            return True
        return False

    def expired(
        self, group: Group, offsets: Iterable[tuple[TopicPartition, CommittedOffset]]
    ) -> Iterable[TopicPartition]:
        """The partitions whose offsets have expired, except those with a pending offset."""
        now_ms = self.groups.clock.now_ms()
        for partition, offset in offsets:
            name = self.groups.topics.topic_name(partition[0])
            if name is not None and group.is_subscribed_to(name) and not group.is_empty:
                continue
            if self.groups.offsets.has_pending(group.group_id, partition):
                continue
            if now_ms >= self.deadline_ms(group, offset):
                yield partition

    def deadline_ms(self, group: Group, offset: CommittedOffset) -> float:
        """When an offset expires, counted from the time when the group became empty, or from the commit."""
        if offset.expire_timestamp_ms is not None:
            return offset.expire_timestamp_ms
        retention_ms = self.groups.config.offsets_retention_ms
        if not group.protocol_type:
            return offset.commit_timestamp_ms + retention_ms
        if group.is_empty:
            since_ms = max(group.empty_since_ms or 0, offset.commit_timestamp_ms)
            return since_ms + retention_ms
        return offset.commit_timestamp_ms + retention_ms if has_subscription(group) else math.inf


def has_subscription(group: Group) -> bool:
    """Whether the topics of the members are known and settled, so that offsets of other topics may expire."""
    if group.group_type is not GroupType.CLASSIC:
        return True
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.state_name == ClassicState.STABLE
