"""A group of the classic protocol: its members and its generation.

Nothing here answers requests or starts timers; `classic_rebalance` does.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

from odradek.group.classic_member import ClassicMember, Protocols
from odradek.group.classic_state import MAY_FOLLOW, ClassicState
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from odradek.group.group import Committer, GroupType, PartitionCheck
from odradek.group.member_sizes import MemberSizes, protocols_size
from odradek.waiting.clock import TimerTask
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

log = logging.getLogger(__name__)


@dataclass(eq=False)
class ClassicGroup:
    """A classic group; after ClassicGroup.java.

    Invariants: the leader is a member; a member id is pending or belongs to a member, not both; each static
    member's instance id maps to its current member id; a group with members has a protocol type.
    """

    group_type = GroupType.CLASSIC

    group_id: str
    _: KW_ONLY
    protocol_type: str = ""
    generation: int = 0
    empty_since_ms: int | None = None
    state: ClassicState = ClassicState.EMPTY
    previous_state: ClassicState = ClassicState.EMPTY
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by instance id."""
    pending_members: dict[str, TimerTask] = field(default_factory=dict)
    """Member ids that were assigned with MEMBER_ID_REQUIRED but not used yet, with their session
    timers.
    """
    sizes: MemberSizes = field(default_factory=MemberSizes)
    protocol_support: Counter[str] = field(default_factory=Counter)
    """The number of members that support each protocol."""
    joins_parked: int = 0
    """The number of members whose JoinGroup waits for a response."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of this generation that have not sent SyncGroup."""
    new_member_added: bool = False
    """Whether a member has joined since the initial delay began or was extended."""
    join_timer: TimerTask | None = None
    sync_timer: TimerTask | None = None
    subscription: frozenset[str] | None = None
    """The topics of all members; None if they are not known."""

    @property
    def state_name(self) -> str:
        return str(self.state)

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_unused(self) -> bool:
        """Whether the group has never had a member and no pending member is about to join."""
        return self.is_empty and not self.pending_members and self.generation == 0

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self.members.values())

    def transition(self, state: ClassicState) -> None:
        """Change to another state."""
        assert self.state in MAY_FOLLOW[state], f"{self.state} -> {state}"
        self.previous_state, self.state = self.state, state

    # -- members

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Check that a request comes from a member.

        Raises:
            ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another client has taken over the instance
                id.
        """
        if group_instance_id is not None:
            current_id = self.static_members.get(group_instance_id)
            if current_id is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current_id != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a new member; the first one becomes the leader."""
        if not self.members:
            self.protocol_type = protocol_type
            self.empty_since_ms = None
        self.members[member.member_id] = member
        self.measure(member)
        self.protocol_support.update(member.protocol_names)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.forget_pending(member.member_id)
        self.note("member joined", member=member.member_id, client_id=member.client_id)

    def note(self, event: str, **about: object) -> None:
        """Log an event at debug."""
        extra = {"group": self.group_id, "generation": self.generation, "members": len(self.members)}
        log.debug(event, extra=extra | about)

    def remove(self, member_id: str) -> ClassicMember:
        """Remove a member. If it was the leader, the next member becomes the leader."""
        member = self.members.pop(member_id)
        self.sizes.drop(member_id)
        member.end_session()
        self.forget_protocols(member)
        self.joins_parked -= member.join is not None
        self.pending_syncs.discard(member_id)
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.note("member left", member=member_id)
        return member

    def measure(self, member: ClassicMember) -> None:
        """Count the present size of a member."""
        self.sizes.put(member.member_id, protocols_size(member.protocols) + len(member.assignment))

    def forget_pending(self, member_id: str) -> bool:
        """Remove a pending member id, which was used or has timed out; return whether it was pending."""
        session = self.pending_members.pop(member_id, None)
        if session is None:
            return False
        session.cancel()
        if member_id not in self.members:
            self.sizes.drop(member_id)
        return True

    def replace_static(self, instance_id: str, member_id: str) -> ClassicMember:
        """Give the place of a static member to another client, under a new member id.

        The order of the members, by which the next leader is chosen, stays the same.
        """
        old_id = self.static_members[instance_id]
        member = self.members[old_id]
        self.members = {
            (member_id if known == old_id else known): place for known, place in self.members.items()
        }
        self.static_members[instance_id] = member_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(member_id)
        if self.leader_id == old_id:
            self.leader_id = member_id
        member.member_id = member_id
        self.sizes.drop(old_id)
        self.measure(member)
        return member

    def park_join(
        self, member: ClassicMember, join: Deferred[JoinGroupResponse]
    ) -> Deferred[JoinGroupResponse] | None:
        """Let a member wait for the next generation. Returns the join that it replaces, if any."""
        before, member.join = member.join, join
        self.joins_parked += before is None
        return before

    def take_join(self, member: ClassicMember) -> Deferred[JoinGroupResponse] | None:
        """Unpark the join of a member; the caller answers it."""
        join, member.join = member.join, None
        self.joins_parked -= join is not None
        return join

    # -- protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols may join."""
        if not self.members:
            return bool(protocol_type and protocols)
        candidates = self.candidate_protocols()
        return protocol_type == self.protocol_type and any(name in candidates for name, _ in protocols)

    def candidate_protocols(self) -> set[str]:
        """The protocols that all members support."""
        everyone = len(self.members)
        return {name for name, members in self.protocol_support.items() if members == everyone}

    def update_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        """Replace the protocols of a member."""
        self.forget_protocols(member)
        member.protocols = protocols
        self.measure(member)
        self.protocol_support.update(member.protocol_names)

    def forget_protocols(self, member: ClassicMember) -> None:
        """Remove a member's protocols from the counts."""
        for name in member.protocol_names:
            self.protocol_support[name] -= 1
            if not self.protocol_support[name]:
                del self.protocol_support[name]

    def selected_protocol(self) -> str:
        """The protocol with the most votes; of several with equal votes, the one with the first vote."""
        candidates = self.candidate_protocols()
        votes = Counter(member.vote(candidates) for member in self)
        return votes.most_common(1)[0][0]

    # -- the generation

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else elect the first member that has; return whether there is
        one.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join is None:
            joined = next((member.member_id for member in self if member.join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    @property
    def has_all_joined(self) -> bool:
        """Whether all members have sent JoinGroup and no member id is pending."""
        return not self.pending_members and self.joins_parked == len(self.members)

    def next_generation(self, now_ms: int) -> None:
        """Start a new generation with all members, or become empty without any."""
        self.generation = self.generation + 1 if self.generation < INT32_MAX else 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.selected_protocol()
            self.transition(ClassicState.COMPLETING_REBALANCE)
        else:
            self.protocol_name = None
            self.empty_since_ms = now_ms
            self.transition(ClassicState.EMPTY)
        self.subscription = self.known_subscription()

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def joined_members(self) -> list[JoinGroupResponseMember]:
        """All members with their metadata, for the leader."""
        protocol = self.protocol_name or ""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(protocol),
            )
            for member in self
        ]

    # -- other requests

    def known_subscription(self) -> frozenset[str] | None:
        """The topics of all members; None if they are not consumers or their metadata cannot be read."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for metadata in {member.metadata(self.protocol_name) for member in self}:  # most are equal
            subscribed = subscribed_topics(metadata)
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscription is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscription

    def validate_offset_commit(self, committer: Committer) -> PartitionCheck | None:
        is_empty = self.state is ClassicState.EMPTY
        if committer.generation_id < 0 and is_empty:
            return None  # an admin client, or a consumer that assigns its own partitions
        names_itself = committer.member_id or committer.group_instance_id is not None
        if names_itself or committer.generation_id >= 0:
            self.check_member(committer.member_id, committer.group_instance_id)
            if committer.generation_id != self.generation:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        elif not committer.is_transactional:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not committer.is_transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow every fetch: members of classic groups do not identify themselves in OffsetFetch."""

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def topics_changed(self) -> None:
        """Do nothing: clients of the classic protocol detect changes with Metadata."""

    def close(self) -> None:
        self.sizes.detach()
        for member in self:
            member.end_session()
        for session in (*self.pending_members.values(), self.join_timer, self.sync_timer):
            if session is not None:
                session.cancel()
        self.pending_members.clear()
        self.join_timer = self.sync_timer = None
        self.state = ClassicState.DEAD
