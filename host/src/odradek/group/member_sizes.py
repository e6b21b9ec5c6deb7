"""The number of members of all groups, and the memory of what they sent and were assigned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from odradek.group.classic_member import Protocols
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock

PARTITION_BYTES: Final = 100
"""Memory of one assigned partition."""


def protocols_size(protocols: Protocols) -> int:
    """The bytes of a member's protocols."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


def topics_size(names: Iterable[str] | None, pattern: str | None) -> int:
    """The bytes of a subscription, about."""
    return sum(map(len, names or ())) + len(pattern or "")


@dataclass(slots=True, eq=False)
class GroupTotals:
    """Counts the members of all registered groups."""

    max_members: int
    max_bytes: int
    clock: Clock
    members: int = 0
    """Pending member ids included."""
    bytes: int = 0
    members_limit: StateLimit = field(init=False)
    bytes_limit: StateLimit = field(init=False)

    def __post_init__(self) -> None:
        self.members_limit = StateLimit(
            "group members", "group.members.max", self.max_members, lambda: self.members, self.clock
        )
        self.bytes_limit = StateLimit(
            "bytes of group members",
            "group.members.max.bytes",
            self.max_bytes,
            lambda: self.bytes,
            self.clock,
        )

    def check(self, sizes: MemberSizes | None, member_ids: Iterable[str | None], size: int) -> None:
        """Check that there is room for a member that joins or changes.

        Args:
            sizes: Those of its group; None if it is new.
            member_ids: The ids under which the member may be known.
            size: Its new size in bytes.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        known = [sizes.by_member[each] for each in member_ids if each in sizes.by_member] if sizes else []
        if not known:
            self.members_limit.check()
        self.bytes_limit.check(size - max(known, default=0))


@dataclass(slots=True, eq=False)
class MemberSizes:
    """The sizes of one group's members. They count from `attach` to `detach`."""

    by_member: dict[str | None, int] = field(default_factory=dict)
    """In bytes; 0 for a pending member id."""
    bytes: int = 0
    totals: GroupTotals | None = None

    def put(self, member_id: str, size: int) -> None:
        """Set the size of a member, which may be new."""
        before = self.by_member.get(member_id)
        self.by_member[member_id] = size
        self.change(before is None, size - (before or 0))

    def drop(self, member_id: str) -> None:
        """Forget a member, if it is known."""
        size = self.by_member.pop(member_id, None)
        if size is not None:
            self.change(-1, -size)

    def change(self, members: int, size: int) -> None:
        self.bytes += size
        if self.totals is not None:
            self.totals.members += members
            self.totals.bytes += size

    def attach(self, totals: GroupTotals) -> None:
        """Count: the group is registered."""
        if self.totals is None:
            self.totals = totals
            totals.members += len(self.by_member)
            totals.bytes += self.bytes

    def detach(self) -> None:
        """Count no longer: the group is closed."""
        if self.totals is not None:
            self.totals.members -= len(self.by_member)
            self.totals.bytes -= self.bytes
            self.totals = None
