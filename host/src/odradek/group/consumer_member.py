"""One member of a consumer group.

After org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass

from odradek.group.classic_member import Protocols
from odradek.group.committed_offset import TopicPartition
from odradek.group.group_member import GroupMember
from odradek.waiting.clock import TimerTask


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
class ConsumerMember(GroupMember[TopicPartition]):
    """One member, which holds partitions."""

    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    """Empty for none."""
    server_assignor: str | None = None
    """The assignor it prefers."""
    classic: ClassicMembership | None = None
    """Set if the member uses the classic protocol."""

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

    def stop_timers(self) -> None:
        """Stop all timers of a member that is removed."""
        GroupMember.stop_timers(self)
        self.speak_classic(None)
