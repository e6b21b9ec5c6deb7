"""A member of a group whose tasks or partitions the broker assigns: what consumer and streams groups have in
common (KIP-848, KIP-1071).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from odradek.waiting.clock import TimerTask

JOIN_EPOCH = 0
"""The member epoch of a request to join."""
LEAVE_EPOCH = -1
"""The member epoch of a request to leave for good."""
STATIC_LEAVE_EPOCH = -2
"""The member epoch of a static member that leaves but will return. What it holds waits for it."""

H = TypeVar("H")
"""What members hold: partitions, or tasks."""


class MemberState(Enum):
    """The progress of a member towards its target."""

    STABLE = "stable"
    UNREVOKED = "unrevoked"
    """It must give something up and has not confirmed this yet."""
    UNRELEASED = "unreleased"
    """It has reached the assignment epoch, but other members still hold something of its target."""


@dataclass(slots=True, eq=False)
class GroupMember(Generic[H]):
    """One member. A null field of a request leaves its value unchanged."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: dict[H, int] = field(default_factory=dict)
    """What it has, each with the epoch since which it has it (KIP-1251)."""
    pending_revocation: dict[H, int] = field(default_factory=dict)
    """What it must give up and may still own. No other member gets it meanwhile."""
    session: TimerTask | None = None
    rebalance: TimerTask | None = None
    """Runs while the member must give something up."""

    def advance(self, member_epoch: int) -> None:
        """Move to an epoch. The previous one stays valid in case the response is lost."""
        self.previous_member_epoch = self.member_epoch
        self.member_epoch = member_epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has the complete target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def stop_rebalance(self) -> None:
        """Stop the rebalance timeout."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def stop_timers(self) -> None:
        """Stop all timers of a member that is removed."""
        self.stop_rebalance()
        if self.session is not None:
            self.session.cancel()
            self.session = None
