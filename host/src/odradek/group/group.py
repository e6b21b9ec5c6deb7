"""The common interface of groups of both protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from odradek.group.member_sizes import MemberSizes

PartitionCheck = Callable[[bytes, int], None]
"""Checks one partition (topic id, index) of a commit; raises `ApiError` to refuse it."""
MEMBER_EPOCH_VERSION = 9
"""The first version of OffsetCommit that carries a member epoch."""
TXN_MEMBER_EPOCH_VERSION = 6
"""The first version of TxnOffsetCommit whose clients know the errors of member epochs."""


class GroupType(StrEnum):
    """The types of groups, as named by ListGroups v5 (GroupType.java)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """The identity in OffsetCommit and TxnOffsetCommit."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1
    """In the consumer protocol, the member epoch. -1 if the client is not a member."""
    api_version: int = 10
    is_transactional: bool = False

    @property
    def knows_member_epochs(self) -> bool:
        """Whether this version of the request has the errors GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""
        first = TXN_MEMBER_EPOCH_VERSION if self.is_transactional else MEMBER_EPOCH_VERSION
        return self.api_version >= first


class GroupMember(Protocol):
    """A member of a group of either protocol."""

    client_id: str
    client_host: str


class Group(Protocol):
    """A group of either protocol.

    Groups are registered in `GroupCoordinator.groups`. Their offsets are in `GroupOffsets`, by group id, and
    stay if a group changes its type.
    """

    group_id: str
    sizes: MemberSizes
    static_members: dict[str, str]
    """Member ids by instance id."""

    @property
    def group_type(self) -> GroupType:
        """The protocol of the group."""

    @property
    def protocol_type(self) -> str:
        """``consumer`` for consumers; "" if no member has ever joined."""

    @property
    def state_name(self) -> str:
        """The state as shown by Describe and ListGroups, such as ``Stable``."""

    @property
    def members(self) -> Mapping[str, GroupMember]:
        """By member id."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def generation(self) -> int:
        """The generation id or the group epoch, from which a successor of the other type continues."""

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member left; None while there are members, or if there never was one."""

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """Check that a client may commit offsets now; return a further check for each partition, if any.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
                STALE_MEMBER_EPOCH or UNSUPPORTED_VERSION.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that a member may read the offsets (since OffsetFetch v9). Without a member id anyone may.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """

    def validate_delete(self) -> None:
        """Check that the group may be deleted.

        Raises:
            ApiError: NON_EMPTY_GROUP.
        """

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads this topic, so that its offsets must be retained."""

    def topics_changed(self) -> None:
        """Note that topics were created or deleted, or have more partitions."""

    def close(self) -> None:
        """Cancel all timers, because the group is removed from the registry."""
