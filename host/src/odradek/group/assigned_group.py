"""A group to whose members the host assigns: who is in it, and how long they may be silent.

Consumer, share and streams groups are such groups.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from odradek.group.group import GroupType
from odradek.group.group_config import GroupConfig
from odradek.group.member_sizes import MemberSizes
from odradek.group.topic_view import TopicView
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

FIRST_EPOCH = 1


class AssignedMember(Protocol):
    """The attributes of members of all kinds."""

    member_id: str
    client_id: str
    client_host: str
    session: TimerTask | None

    def stop_timers(self) -> None:
        """Stop all timers of a member that is removed."""


M = TypeVar("M", bound=AssignedMember)
"""The members."""


class AssignedGroup(ABC, Generic[M]):
    """One group.

    Invariant: each static member's instance id maps to its current member id.
    """

    group_type: GroupType
    protocol_type: str

    def __init__(
        self,
        group_id: str,
        *,
        config: GroupConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicView,
        generation: int = FIRST_EPOCH,
        changed: Callable[[Any], None] = lambda _group: None,
        expelled: Callable[[M], None] = lambda _member: None,
    ) -> None:
        self.group_id = group_id
        self.config = config
        self.clock = clock
        self.timer = timer
        self.topics = topics
        self.group_epoch = max(generation, FIRST_EPOCH)
        self.members: dict[str, M] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.sizes = MemberSizes()
        self.changed = changed
        """Called when the group has changed and its store has not been told."""
        self.expelled = expelled
        """Called with a member whose session has ended."""

    @abstractmethod
    def session_timeout_ms(self, member: M) -> int:
        """How long a member may be silent."""

    @abstractmethod
    def remove(self, *members: M) -> None:
        """Remove members: what they held is free, and who gets it must be computed again."""

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def generation(self) -> int:
        return self.group_epoch

    def note(self, event: str, **about: object) -> None:
        """Log an event at debug."""
        extra = {"group": self.group_id, "epoch": self.group_epoch, "members": len(self.members)}
        log.debug(event, extra=extra | about)

    def member(self, member_id: str) -> M:
        """The member with this id.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def start_sessions(self) -> None:
        """Start the session timers of members that have none."""
        for member in self.members.values():
            if member.session is None:
                self.restart_session(member)

    def restart_session(self, member: M) -> None:
        """Restart the session timer of a member, because it has sent a request."""
        deadline_ms = self.clock.monotonic_ms() + self.session_timeout_ms(member)
        if member.session is not None and member.session.deadline_ms <= deadline_ms:
            member.session.postpone(deadline_ms)
            return
        if member.session is not None:
            member.session.cancel()
        member.session = self.timer.schedule(deadline_ms, partial(self.end_session, member))

    def end_session(self, member: M) -> None:
        """Remove a member that was silent for too long."""
        self.note("session ended", member=member.member_id)
        self.expel(member)
        self.expelled(member)

    def expel(self, *members: M) -> None:
        """Remove members, and have that stored if possible."""
        self.remove(*members)
        self.changed(self)

    def touch(self, member_id: str) -> None:
        """Note that a member is new, has changed or has left. `KeptGroup` stores it."""

    def validate_delete(self) -> None:
        """See `Group`."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} is not empty.")

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """See `Group`."""

    @abstractmethod
    def topics_changed(self) -> None:
        """See `Group`. The next heartbeat of any member takes in the change."""

    def close(self) -> None:
        """See `Group`."""
        self.sizes.detach()
        for member in self.members.values():
            member.stop_timers()
