"""The registry of groups of all protocols.

The protocols are above: `classic_protocol` handles JoinGroup, SyncGroup, Heartbeat and LeaveGroup,
`consumer_protocol` the heartbeats of KIP-848, `share_protocol` those of KIP-932 and `streams_protocol` those
of KIP-1071. They find, create and replace groups here. Committed offsets are in `GroupOffsets`, by group id;
share groups have none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.group.assigned_group import AssignedGroup, AssignedMember
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.committed_offset import CommittedOffset, TopicPartition
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.group import Committer, GroupType, PartitionCheck
from odradek.group.group_config import GROUPS_KEY, GroupConfig
from odradek.group.group_migration import DOWNGRADE, dismiss, downgraded
from odradek.group.group_offsets import GroupOffsets, GroupRow, OffsetStore
from odradek.group.group_properties import in_force
from odradek.group.group_subscriptions import Compute
from odradek.group.kept_group import KeptGroup, restore
from odradek.group.member_sizes import GroupTotals
from odradek.group.offset_total import OffsetTotal
from odradek.group.outbox import Outbox
from odradek.group.share_config import ShareGroupConfig
from odradek.group.share_group import ShareGroup
from odradek.group.share_states import ShareStates
from odradek.group.streams_group import StreamsGroup
from odradek.group.topic_view import TopicView
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup
"""A group of any protocol. Its offsets are in `GroupOffsets`, by group id, and stay if it changes its
type."""


@dataclass(slots=True, eq=False)
class GroupCoordinator:
    """All groups of the host, one per id."""

    config: GroupConfig
    clock: Clock
    timer: Timer
    random_uuid: Callable[[], bytes]
    store: OffsetStore
    topics: TopicView
    compute: Compute = result_of
    """Computes the targets of consumer groups."""
    expelled: Callable[[str, str], None] = lambda _client_id, _client_host: None
    """Called with the client id and the address of a member whose session has ended."""
    offsets: GroupOffsets = field(init=False)
    shares: ShareStates = field(init=False)
    groups: dict[str, Group] = field(default_factory=dict)
    own_configs: dict[str, GroupConfig] = field(default_factory=dict)
    """The configuration of groups that an operator has configured, by group id. The group need not exist."""
    groups_limit: StateLimit = field(init=False)
    configs_limit: StateLimit = field(init=False)
    totals: GroupTotals = field(init=False)
    outbox: Outbox = field(default_factory=Outbox)
    """The answers to members of classic groups."""
    rebalance: ClassicRebalance = field(init=False)
    """The rebalances of classic groups."""

    def __post_init__(self) -> None:
        most, clock = self.config.max_groups, self.clock
        self.groups_limit = StateLimit("groups", GROUPS_KEY, most, self.groups.__len__, clock)
        self.configs_limit = StateLimit(
            "configured groups", GROUPS_KEY, most, self.own_configs.__len__, clock
        )
        self.totals = GroupTotals(self.config.max_members, self.config.max_member_bytes, clock)
        self.rebalance = ClassicRebalance(
            self.config, self.clock, self.timer, self.outbox, self.classic_group_changed, self.session_ended
        )
        for row in self.store.groups():
            self.replace(self.restored(row))
        self.shares = ShareStates(self.store.shares, self.groups, self.topics)
        self.shares.restore()
        restore(self.store, self.groups)
        total = OffsetTotal(self.config.max_offsets, self.config.max_offsets_metadata, clock)
        self.offsets = GroupOffsets(self.store, self.make_simple_group, total=total)

    def start(self) -> None:
        """Begin to wait for the members of before a restart: from now on they can reach the host."""
        for group in list(self.groups.values()):
            if isinstance(group, KeptGroup):
                group.start()

    @property
    def limits(self) -> list[StateLimit]:
        offsets, totals = self.offsets.total, self.totals
        return [
            self.groups_limit,
            self.configs_limit,
            totals.members_limit,
            totals.bytes_limit,
            offsets.number_limit,
            offsets.metadata_limit,
        ]

    def session_ended(self, member: ClassicMember | AssignedMember) -> None:
        """A member was silent for too long, and is removed."""
        self.expelled(member.client_id, member.client_host)

    def places(self) -> Iterator[tuple[str, str]]:
        """Client id and address, as Kafka writes it, of each live member of all groups."""
        for group in self.groups.values():
            for member in group.members.values():
                yield member.client_id, member.client_host

    def restored(self, row: GroupRow) -> Group:
        """A group after a restart, without members."""
        group_id, group_type, protocol_type, generation, empty_since_ms = row
        if group_type == GroupType.SHARE:
            return self.share_group(group_id, generation)
        if group_type == GroupType.CONSUMER:
            return self.consumer_group(group_id, generation, empty_since_ms)
        if group_type == GroupType.STREAMS:
            return self.streams_group(group_id, generation, empty_since_ms)
        if protocol_type and empty_since_ms is None:
            empty_since_ms = self.clock.now_ms()  # its members were lost with the last run
        return ClassicGroup(
            group_id, protocol_type=protocol_type, generation=generation, empty_since_ms=empty_since_ms
        )

    def consumer_group(
        self, group_id: str, generation: int, empty_since_ms: int | None = None
    ) -> ConsumerGroup:
        """Create a group of the consumer protocol, empty and not registered."""
        return ConsumerGroup(
            group_id,
            generation=generation,
            empty_since_ms=empty_since_ms,
            all_classic=self.downgrade,
            compute=self.compute,
            **self.of_each_group(group_id),
        )

    def share_group(self, group_id: str, generation: int = 0) -> ShareGroup:
        """Create a share group, empty and not registered."""
        return ShareGroup(group_id, generation=generation, **self.of_each_group(group_id))

    def share_config(self, group_id: str) -> ShareGroupConfig:
        """The settings of a share group, also of one that does not exist."""
        return self.own_configs.get(group_id, self.config).share

    def streams_group(
        self, group_id: str, generation: int, empty_since_ms: int | None = None
    ) -> StreamsGroup:
        """Create a streams group, empty and not registered."""
        return StreamsGroup(
            group_id,
            generation=generation,
            empty_since_ms=empty_since_ms,
            compute=self.compute,
            **self.of_each_group(group_id),
        )

    def of_each_group(self, group_id: str) -> dict[str, Any]:
        """What all groups get to which the host assigns."""
        return {
            "config": self.own_configs.get(group_id, self.config),
            "clock": self.clock,
            "timer": self.timer,
            "topics": self.topics,
            "changed": self.group_changed,
            "expelled": self.session_ended,
        }

    def configure(self, group_id: str, properties: Mapping[str, str]) -> None:
        """Apply a group's own properties from the next heartbeats on; without any, the host's apply."""
        config = in_force(properties, self.config)
        self.own_configs.pop(group_id, None)
        if properties:
            self.own_configs[group_id] = config
        group = self.groups.get(group_id)
        if isinstance(group, AssignedGroup):
            group.config = config

    def use_config(self, config: GroupConfig) -> None:
        """Use other settings for all groups, those with own ones included."""
        self.config = config
        for group in self.groups.values():
            if isinstance(group, AssignedGroup):
                group.config = config

    def keep(self, group: ShareGroup | StreamsGroup) -> None:
        """Store what a request has changed of a group; register it if it is new.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: it cannot be stored. A new group is not registered.
        """
        if self.groups.get(group.group_id) is not group:
            self.adopt(group)
        elif group.is_unsaved:
            self.save(group)

    def adopt(self, group: ConsumerGroup | ShareGroup | StreamsGroup) -> None:
        """Register a new group to which the host assigns, which may replace a classic one and have its
        members.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the group cannot be stored and was not registered.
        """
        try:
            self.save(group)
        except ApiError:
            group.close()
            raise
        with self.outbox:
            before = self.groups.get(group.group_id)
            if isinstance(before, ClassicGroup):
                dismiss(self.rebalance, before)
            self.replace(group)
            group.start_sessions()

    def downgrade(self, group: ConsumerGroup) -> None:
        """Turn a group that has only members of the classic protocol into a classic one, if the operator
        allows.
        """
        classic = downgraded(group) if self.config.consumer_migration_policy in DOWNGRADE else None
        if classic is None or self.groups.get(group.group_id) is not group:
            return
        with self.outbox:
            self.replace(classic)
            self.save_if_possible(classic)
            for member in classic:
                self.rebalance.arm_session(classic, member)
            # The consumer group assigned on the broker; a classic group needs a leader, so its members must
            # join again.
            self.rebalance.prepare(classic)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups.values())

    def group(self, group_id: str) -> Group:
        """The group with this id.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND.
        """
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def put(self, group: Group) -> None:
        """Store and register a group that is new or replaces an empty one.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the group cannot be stored; nothing has changed.
        """
        self.save(group)
        self.replace(group)

    def replace(self, group: Group) -> None:
        """Register a group and close the one that it replaces, if any."""
        before = self.groups.get(group.group_id)
        if before is not None and before is not group:
            before.close()
        self.groups[group.group_id] = group
        group.sizes.attach(self.totals)

    def save(self, group: Group) -> None:
        """Store the part of a group that survives a restart: its type, its generation, when it became empty,
        and what a `KeptGroup` keeps. Other members get UNKNOWN_MEMBER_ID and join again.
        """
        row = (
            group.group_id,
            str(group.group_type),
            group.protocol_type,
            group.generation,
            group.empty_since_ms,
        )
        if not isinstance(group, KeptGroup):
            self.store.put_group(row)
            return
        is_same = group.epochs == group.saved_epochs
        self.store.put_group(row, None if is_same else group.stored(), *group.changes())
        group.saved()

    def classic_group_changed(self, group: ClassicGroup) -> None:
        """Store a new generation, or forget a group that never had a member or offsets."""
        if group.is_unused and not self.offsets.has_any(group.group_id):
            if self.groups.get(group.group_id) is group:
                del self.groups[group.group_id]
            return
        self.save_if_possible(group)

    def group_changed(self, group: AssignedGroup[Any]) -> None:
        """Store a group that has changed, if that is possible and it is still registered."""
        known = self.groups.get(group.group_id)
        if known is not None and known is group:
            self.save_if_possible(known)

    def save_if_possible(self, group: Group) -> None:
        """Store a changed group, or log why it cannot be stored. Its members continue in either case.

        A restart before the next change would bring back what was stored last.
        """
        try:
            self.save(group)
        except ApiError as error:
            log.warning("cannot store a group", extra={"group": group.group_id, "error": str(error)})

    def committing(self, group_id: str, committer: Committer) -> PartitionCheck | None:
        """Check that a client may commit offsets; return a further check for each partition, if any.

        Offsets for an unknown group create one, see `make_simple_group`.

        Raises:
            ApiError: GROUP_ID_NOT_FOUND (ILLEGAL_GENERATION for older clients), POLICY_VIOLATION if there are
                too many groups, or one of `Group.validate_offset_commit`.
        """
        group = self.groups.get(group_id)
        if committer.is_transactional:
            self.check_not_owned(group_id)
        if group is None:
            if committer.generation_id >= 0:
                known = committer.knows_member_epochs
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION)
            self.groups_limit.check()
            return None
        check = group.validate_offset_commit(committer)
        if isinstance(group, ClassicGroup) and not committer.is_transactional:
            member = group.members.get(committer.member_id)
            if member is not None:
                self.rebalance.arm_session(group, member)  # the commit counts as a heartbeat
        return check

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit offsets that `committing` has allowed; they are stored when this returns."""
        if not offsets:
            return
        self.offsets.commit(group_id, offsets)
        if group_id in self.offsets.owned:
            self.offsets.owned[group_id](offsets)

    def check_not_owned(self, group_id: str) -> None:
        """Check that a group is not one of the host's own.

        Raises:
            ApiError: GROUP_AUTHORIZATION_FAILED: the host consumes in it.
        """
        if group_id in self.offsets.owned:
            raise ApiError(
                ErrorCode.GROUP_AUTHORIZATION_FAILED, f"The host itself is the consumer in group {group_id}."
            )

    def make_simple_group(self, group_id: str) -> None:
        """Create a group for offsets only, without members or protocol type, unless the group exists."""
        if group_id not in self.groups:
            self.replace(ClassicGroup(group_id))

    def remove(self, group_id: str) -> None:
        """Delete a group and all its offsets.

        Raises:
            ApiError: COORDINATOR_NOT_AVAILABLE: the store cannot be written now; nothing has changed.
        """
        self.offsets.delete_group(group_id)
        group = self.groups.pop(group_id, None)
        if group is not None:
            group.close()
        if isinstance(group, ShareGroup):
            self.shares.dropped(group_id, None)

    def topics_changed(self) -> None:
        """Take in that topics were created or deleted, or have more partitions.

        The offsets and delivery states of a deleted topic are deleted. If that cannot be stored, the next
        change tries again.
        """
        try:
            self.offsets.drop_topics(lambda topic_id: self.topics.topic_name(topic_id) is not None)
            self.shares.drop_topics()
        except ApiError as error:
            log.warning(
                "cannot delete the offsets of deleted topics: the next change of topics tries again",
                extra={"error": str(error)},
            )
        for group in list(self.groups.values()):
            group.topics_changed()

    def close(self) -> None:
        """Cancel every timer."""
        for group in self.groups.values():
            group.close()
