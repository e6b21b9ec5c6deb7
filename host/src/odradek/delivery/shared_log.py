"""A log that several processes read together, as members of a consumer group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from odradek.delivery.log_cursor import Chunk

Positions = Mapping[int, int]
"""An offset by partition."""


class Membership(Enum):
    """A process and its group."""

    MEMBER = auto()
    REBALANCE = auto()
    """The group waits for this member to join again."""
    LOST = auto()
    """The group has given the partitions to others."""


@dataclass(frozen=True, slots=True)
class Recreated:
    """The topic was deleted and created again."""

    old_ends: Positions
    new_ends: Positions


class SharedLog(Protocol):
    """One member's view of the log. All methods block, and are called on one thread, except `ends`.

    Raises:
        ApiError: The brokers refuse a request, or do not answer: NETWORK_EXCEPTION.
    """

    topic_name: str

    def join(self) -> frozenset[int]:
        """Join the group, or take part in its rebalance; return the assigned partitions. After an error no
        partition is assigned.
        """

    def positions(self, partitions: Collection[int]) -> dict[int, int]:
        """The offsets at which to continue in partitions that were just assigned."""

    def membership(self) -> Membership:
        """Stay a member; return the state of the membership."""

    def recreated(self) -> Recreated | None:
        """Whether the topic was deleted and created again, since the last call."""

    def leave(self) -> None:
        """Leave the group, so that others take over at once. No method may be called after this one."""

    def read(self, positions: Positions) -> list[Chunk]:
        """Records from the positions on; empty if none arrive soon."""

    def ends(self) -> dict[int, int]:
        """The offset of the next record by partition, as last known. Call from any thread."""

    def begin(self, group_id: str, moved: Callable[[Positions], None]) -> dict[int, int]:
        """No position: they come with the partitions. ``moved`` is called, during `read`, with the end of a
        partition that lost the records after it.
        """

    def commit(self, group_id: str, positions: Positions) -> None:
        """Commit offsets, as a member of the group."""

    def bury(self, batch: bytes) -> None:
        """Append dead letters."""
