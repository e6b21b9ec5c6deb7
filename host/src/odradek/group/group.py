"""What every kind of group can do: be described, deleted, and say who may commit offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

PartitionCheck = Callable[[bytes, int], None]
"""Whether one partition (topic id, index) may be committed; raises `ApiError` if not."""


class GroupType(StrEnum):
    """``GroupType.java``, as ListGroups v5 names them."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Who commits offsets, as OffsetCommit and TxnOffsetCommit say it."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1
    """Of the consumer protocol: the member epoch. -1: not a member of the group."""
    api_version: int = 10
    is_transactional: bool = False


class Group(Protocol):
    """A group of either protocol.

    A group lives in `GroupCoordinator.groups`; its offsets live in `GroupOffsets`, by group id, and stay when
    a group changes its type.
    """

    group_id: str

    @property
    def group_type(self) -> GroupType:
        """Which protocol the members speak."""

    @property
    def protocol_type(self) -> str:
        """``consumer`` for consumers; "" while nobody has joined yet."""

    @property
    def state_name(self) -> str:
        """As Describe and ListGroups show it: ``Stable``."""

    @property
    def is_empty(self) -> bool:
        """There is no member."""

    @property
    def generation(self) -> int:
        """The generation id, or the group epoch: what a successor of the other type goes on from."""

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member left; None while there are members, or if there never was one."""

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        """Whether these offsets may be committed now; a check for each partition, where that differs.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
                STALE_MEMBER_EPOCH or UNSUPPORTED_VERSION.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether this member may see the offsets (from OffsetFetch v9; without a member anybody may).

        Raises:
            ApiError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """

    def validate_delete(self) -> None:
        """Whether the group may be deleted.

        Raises:
            ApiError: NON_EMPTY_GROUP.
        """

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read this topic, so that its offsets must stay."""

    def topics_changed(self) -> None:
        """Topics were created or deleted, or have got more partitions."""

    def close(self) -> None:
        """The group is removed from the registry: cancel all timers."""
