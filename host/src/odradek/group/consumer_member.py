"""One member of a consumer group, as the coordinator knows it; after
org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from odradek.clock import TimerTask
from odradek.group.classic_member import Protocols
from odradek.group.committed_offset import TopicPartition

JOIN_EPOCH = 0
"""The member epoch of a request that joins."""
LEAVE_EPOCH = -1
"""The member epoch of a request that leaves for good."""
STATIC_LEAVE_EPOCH = -2
"""The member epoch of a static member that will be back; its partitions wait for it."""


class MemberState(Enum):
    """How far a member is on its way to its target."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked"
    """It was told to give up partitions and has not said that it did."""
    UNRELEASED_PARTITIONS = "unreleased"
    """It is at the target's epoch, but others still hold some of its partitions."""


@dataclass(slots=True, eq=False)
class ClassicMembership:
    """What there is besides to a member that speaks the classic protocol."""

    session_timeout_ms: int
    """A classic member chooses it itself."""
    protocols: Protocols
    join: TimerTask | None = None
    """Runs while the member is to join again."""
    sync: TimerTask | None = None
    """Runs from JoinGroup to SyncGroup."""

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    def stop_timers(self) -> None:
        """It has come, or is gone."""
        for task in (self.join, self.sync):
            if task is not None:
                task.cancel()
        self.join = self.sync = None


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """One member. A field of a request that is null leaves what is here as it is."""

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
    """What it was told to have, with the epoch from which on (KIP-1251)."""
    pending_revocation: dict[TopicPartition, int] = field(default_factory=dict)
    """What it was told to give up and may still have. Nobody else gets it."""
    classic: ClassicMembership | None = None
    """Of a member that speaks the classic protocol."""
    session: TimerTask | None = None
    rebalance: TimerTask | None = None
    """Runs while the member is to give up partitions."""

    def advance(self, member_epoch: int) -> None:
        """Move to an epoch; the one before is remembered for the case that the answer is lost."""
        self.previous_member_epoch = self.member_epoch
        self.member_epoch = member_epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it has what the target of this epoch says."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def successor(self, member_id: str) -> ConsumerMember:
        """The same static member come back under another id: its place, without its timers and
        without the instance id, which is given with the place."""
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
        """It speaks the classic protocol from now on, or no longer."""
        if self.classic is not None:
            self.classic.stop_timers()
        self.classic = membership

    def stop_rebalance(self) -> None:
        """It need not give up anything any more."""
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def stop_timers(self) -> None:
        """It is gone."""
        self.stop_rebalance()
        self.speak_classic(None)
        if self.session is not None:
            self.session.cancel()
            self.session = None
