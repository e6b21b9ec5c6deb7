"""One member of a consumer group.

After org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from odradek.group.classic_member import Protocols
from odradek.group.committed_offset import TopicPartition
from odradek.waiting.clock import TimerTask

JOIN_EPOCH = 0
"""The member epoch of a request to join."""
LEAVE_EPOCH = -1
"""The member epoch of a request to leave for good."""
STATIC_LEAVE_EPOCH = -2
"""The member epoch of a static member that leaves but will return. Its partitions wait for it."""


class MemberState(Enum):
    """The progress of a member towards its target."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked"
    """It must give up partitions and has not confirmed this yet."""
    UNRELEASED_PARTITIONS = "unreleased"
    """It has reached the assignment epoch, but other members still hold some of its partitions."""


@dataclass(slots=True, eq=False)
class ClassicMembership:
    """The additional state of a member that uses the classic protocol."""

    session_timeout_ms: int
    """Chosen by the client in the classic protocol."""
    protocols: Protocols
    join: TimerTask | None = None
    """Runs while the member must join again."""
    sync: TimerTask | None = None
    """Runs from JoinGroup to SyncGroup."""

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    def stop_timers(self) -> None:
        """Stop waiting for the member's JoinGroup and SyncGroup."""
        for task in (self.join, self.sync):
            if task is not None:
                task.cancel()
        self.join = self.sync = None


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """One member. A null field of a request leaves its value unchanged."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    """Empty for none."""
    server_assignor: str | None = None
    """The assignor it prefers."""
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: dict[TopicPartition, int] = field(default_factory=dict)
    """Its assigned partitions, each with the epoch since which it has it (KIP-1251)."""
    pending_revocation: dict[TopicPartition, int] = field(default_factory=dict)
    """Partitions that it must give up and may still own. No other member gets them meanwhile."""
    classic: ClassicMembership | None = None
    """Set if the member uses the classic protocol."""
    session: TimerTask | None = None
    rebalance: TimerTask | None = None
    """Runs while the member must give up partitions."""

    def advance(self, member_epoch: int) -> None:
        """Move to an epoch. The previous one stays valid in case the response is lost."""
        self.previous_member_epoch = self.member_epoch
        self.member_epoch = member_epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has the complete target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def successor(self, member_id: str) -> ConsumerMember:
        """The same static member under another id, without timers. The caller transfers the instance id."""
        return ConsumerMember(
            member_id=member_id,
            rack_id=self.rack_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscribed_topic_names=self.subscribed_topic_names,
            subscribed_topic_regex=self.subscribed_topic_regex,
            server_assignor=self.server_assignor,
            state=self.state,
            assigned=self.assigned,
            pending_revocation=self.pending_revocation,
        )

    def speak_classic(self, membership: ClassicMembership | None) -> None:
        """Switch to the classic protocol, or to the consumer protocol (None)."""
        if self.classic is not None:
            self.classic.stop_timers()
        self.classic = membership

    def stop_rebalance(self) -> None:
        """Stop the rebalance timeout."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def stop_timers(self) -> None:
        """Stop all timers of a member that is removed."""
        self.stop_rebalance()
        self.speak_classic(None)
        if self.session is not None:
            self.session.cancel()
            self.session = None
