"""Groups that change their protocol while they have members (KIP-848).

With ``group.consumer.migration.policy`` the operator says which way: a member of the consumer protocol that
joins a classic group of consumers makes it a group of the consumer protocol (``upgrade``); when the last such
member has gone, those that are left make up a classic group again (``downgrade``); or both
(``bidirectional``).
"""

from __future__ import annotations

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_member import ClassicMember
from odradek.group.classic_rebalance import ClassicRebalance
from odradek.group.classic_state import ClassicState
from odradek.group.consumer_group import ConsumerGroup
from odradek.group.consumer_member import ClassicMembership, ConsumerMember
from odradek.group.consumer_subscription import CONSUMER_PROTOCOL_TYPE
from odradek.group.embedded_protocol import assignment_bytes, assignment_of, partition_ids, subscription_of
from odradek.group.group_config import GroupConfig
from odradek.group.topic_view import TopicView
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupResponse

UPGRADE = ("upgrade", "bidirectional")
DOWNGRADE = ("downgrade", "bidirectional")


def can_upgrade(config: GroupConfig, classic: ClassicGroup) -> bool:
    """Whether a classic group may become one of the consumer protocol, as far as its head shows."""
    return (
        config.consumer_migration_policy in UPGRADE
        and classic.protocol_type == CONSUMER_PROTOCOL_TYPE
        and len(classic.members) < config.consumer_max_size
    )


def upgrade(classic: ClassicGroup, group: ConsumerGroup) -> bool:
    """Fill an empty group with the members of a classic one, each with what it is assigned.

    Args:
        classic: Stays as it is.
        group: A new one, of the same generation. It is of no use if this fails.

    Returns:
        Whether all members could be understood, and no partition has two of them.
    """
    topics = group.subscriptions.topics
    for known in classic:
        member = converted(known, classic.protocol_name, group.group_epoch, topics)
        if member is None or not group.holders.keys().isdisjoint(member.assigned):
            return False
        group.add(member, known.group_instance_id)
        group.target.by_member[member.member_id] = set(member.assigned)
        group.hold(member, {}, {})
    group.topics_changed()  # the first heartbeat shall compute a target: some may have no assignment yet
    return True


def converted(
    known: ClassicMember, protocol_name: str | None, epoch: int, topics: TopicView
) -> ConsumerMember | None:
    """A classic member as one of a group of the consumer protocol; None if what it says cannot be read."""
    subscription = subscription_of(known.metadata(protocol_name or known.protocols[0][0]))
    assignment = assignment_of(known.assignment)
    if subscription is None or assignment is None:
        return None
    return ConsumerMember(
        known.member_id,
        rack_id=subscription.rack_id,
        client_id=known.client_id,
        client_host=known.client_host,
        rebalance_timeout_ms=known.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned=dict.fromkeys(partition_ids(topics, assignment.assigned_partitions), epoch),
        classic=ClassicMembership(known.session_timeout_ms, known.protocols),
    )


def dismiss(rebalance: ClassicRebalance, classic: ClassicGroup) -> None:
    """The group is another one now: members that wait for its rebalance have to join again."""
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic:
        join = JoinGroupResponse(error_code=again, member_id=member.member_id)
        rebalance.outbox.put(classic.take_join(member), join)
        sync, member.sync_reply = member.sync_reply, None
        rebalance.outbox.put(sync, SyncGroupResponse(error_code=again))


def downgraded(group: ConsumerGroup) -> ClassicGroup | None:
    """The classic group of the members that are left; None if they have no protocol in common.

    It stands as if a leader had assigned what members may have at this moment. (Kafka takes the target, which
    some may not have yet; another upgrade before all have joined again would then free what is still read.)
    The caller lets it rebalance.
    """
    topics = group.subscriptions.topics
    classic = ClassicGroup(group.group_id, protocol_type=CONSUMER_PROTOCOL_TYPE, generation=group.group_epoch)
    for member in group.members.values():
        membership = member.classic
        assert membership is not None
        known = ClassicMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=membership.session_timeout_ms,
            protocols=membership.protocols,
            assignment=assignment_bytes(topics, member.assigned.keys() | member.pending_revocation.keys()),
        )
        classic.add(known, CONSUMER_PROTOCOL_TYPE)
    if not classic.candidate_protocols():
        return None
    classic.protocol_name = classic.selected_protocol()
    classic.subscription = classic.known_subscription()
    classic.state = ClassicState.STABLE
    return classic
