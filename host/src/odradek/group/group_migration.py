"""Migration of groups with members between the two protocols (KIP-848).

The operator chooses the direction with ``group.consumer.migration.policy``. With ``upgrade``, a member of the
consumer protocol that joins a classic group of consumers turns it into a group of the consumer protocol. With
``downgrade``, the group becomes a classic one again when the last such member has left and members of the
classic protocol remain. ``bidirectional`` allows both.
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
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupResponse

UPGRADE = ("upgrade", "bidirectional")
DOWNGRADE = ("downgrade", "bidirectional")


def check_upgrade(config: GroupConfig, classic: ClassicGroup) -> None:
    """Check that policy, protocol type and size let a classic group become one of the consumer protocol.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND.
    """
    if config.consumer_migration_policy not in UPGRADE:
        raise cannot_upgrade(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise cannot_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) >= config.consumer_max_size:
        raise cannot_upgrade(classic, "the group size exceeds the consumer group maximum size")


def cannot_upgrade(classic: ClassicGroup, reason: str) -> ApiError:
    """The refusal, in Kafka's words."""
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def upgrade(classic: ClassicGroup, group: ConsumerGroup) -> None:
    """Copy the members of a classic group, with their assignments, into an empty group.

    Args:
        classic: The classic group, which does not change.
        group: A new group with the same generation. Discard it if this fails.

    Raises:
        ApiError: GROUP_ID_NOT_FOUND: a member's metadata cannot be read, or two members have the same
            partition.
    """
    topics = group.subscriptions.topics
    for known in classic:
        member = converted(known, classic.protocol_name, group.group_epoch, topics)
        if member is None:
            raise cannot_upgrade(classic, "the embedded consumer protocol is malformed")
        if not group.holders.keys().isdisjoint(member.assigned):
            # leaders may assign a partition twice; the consumer protocol must not
            raise cannot_upgrade(classic, "two members have the same partition")
        group.add(member, known.group_instance_id)
        # The current assignment becomes the target, so that the migration by itself moves no partition.
        group.target.by_member[member.member_id] = set(member.assigned)
        group.hold(member, {}, {})
    # Makes the first heartbeat compute a target: some members may have no assignment yet.
    group.topics_changed()


def converted(
    known: ClassicMember, protocol_name: str | None, epoch: int, topics: TopicView
) -> ConsumerMember | None:
    """A classic member converted to a group of the consumer protocol; None if its metadata cannot be read."""
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
    """Answer the parked requests of a migrated classic group: its members must join again."""
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic:
        join = JoinGroupResponse(error_code=again, member_id=member.member_id)
        rebalance.outbox.put(classic.take_join(member), join)
        sync, member.sync = member.sync, None
        rebalance.outbox.put(sync, SyncGroupResponse(error_code=again))


def downgraded(group: ConsumerGroup) -> ClassicGroup | None:
    """The classic group of the remaining members; None if they have no protocol in common.

    Its assignment is what the members may own at this moment. Kafka takes the target, which some members may
    not have reached yet; another upgrade before all have joined again would then free partitions that are
    still being read. The caller starts a rebalance.
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
