"""A group that is stored with its members: share groups and streams groups.

What a group is and what its members have is in the metadata file before a member is told of it, so that a
group is after kill -9 of the host as its members know it. Kafka stores the same in ``__consumer_offsets``.
Members of consumer groups are not stored: they join again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from odradek.group.assigned_group import AssignedGroup, M
from odradek.group.group_offsets import MemberRow, OffsetStore


class KeptGroup(AssignedGroup[M]):
    """One group."""

    def __init__(self, group_id: str, **common: Any) -> None:
        super().__init__(group_id, **common)
        self.unsaved: set[str] = set()
        """The ids of members that have changed or left since the group was stored."""
        self.saved_epochs: tuple[int, int] | None = None
        """The epochs of the group when it was stored."""

    @property
    @abstractmethod
    def epochs(self) -> tuple[int, int]:
        """The group epoch and the assignment epoch. One grows with each change of what `stored` says."""

    @abstractmethod
    def stored(self) -> str:
        """What is stored of the group besides its members, as JSON."""

    @abstractmethod
    def stored_member(self, member: M) -> str:
        """What is stored of a member, as JSON."""

    @abstractmethod
    def restore(self, state: str) -> None:
        """Take back what `stored` said. Raises as `readable` expects."""

    @abstractmethod
    def restore_member(self, member_id: str, state: str) -> None:
        """Take back a member, without timers. Raises as `readable` expects."""

    def start(self) -> None:
        """Start the timers of members that were taken back."""
        self.start_sessions()

    def touch(self, member_id: str) -> None:
        self.unsaved.add(member_id)

    @property
    def is_unsaved(self) -> bool:
        """Whether the group has changed since it was stored."""
        return bool(self.unsaved) or self.epochs != self.saved_epochs

    def saved(self) -> None:
        """Note that the group is stored as it is now."""
        self.unsaved.clear()
        self.saved_epochs = self.epochs

    def changes(self) -> tuple[list[MemberRow], list[str]]:
        """The rows of the members that have changed, and the ids of those that have left."""
        changed = [self.members[each] for each in self.unsaved if each in self.members]
        rows = [(self.group_id, member.member_id, self.stored_member(member)) for member in changed]
        return rows, [each for each in self.unsaved if each not in self.members]


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Read something stored in the block.

    Raises:
        ValueError: It is damaged.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{what} cannot be read: {error!r}") from error


def restore(store: OffsetStore, groups: Mapping[str, object]) -> None:
    """Give the groups after a restart their members and what else was stored.

    Args:
        store: Has only rows of groups of these kinds.
        groups: All groups, by id.

    Raises:
        ValueError: Something stored is damaged.
    """
    kept = {each.group_id: each for each in groups.values() if isinstance(each, KeptGroup)}
    for group_id, state in store.group_states():
        with readable(f"group {group_id}"):
            kept[group_id].restore(state)
    for group_id, member_id, state in store.group_members():
        with readable(f"member {member_id} of group {group_id}"):
            kept[group_id].restore_member(member_id, state)
    for group in kept.values():
        group.saved()
