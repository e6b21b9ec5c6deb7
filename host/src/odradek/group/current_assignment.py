"""Reconciliation: one step of a member towards its target.

After org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder. A member first gives up the
partitions that are not in its target, and stays at its epoch until it confirms this. Then it moves to the
assignment epoch and gets the partitions that no other member holds. It never gets a partition that is
assigned to another member or that another member has not given up yet; the safety of the protocol rests on
this rule alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import ConsumerMember
from odradek.group.group_member import GroupMember, H, MemberState

IsFree = Callable[[H], bool]
"""Whether no member holds a partition or a task."""


def reconcile(
    member: ConsumerMember,
    *,
    assignment_epoch: int,
    target: AbstractSet[TopicPartition],
    topic_ids: AbstractSet[bytes],
    subscription_changed: bool,
    is_free: IsFree[TopicPartition],
    owned: AbstractSet[TopicPartition] | None,
) -> None:
    """Move a member towards its target as far as possible.

    Args:
        member: Its ``assigned``, ``pending_revocation``, ``state`` and epochs change.
        assignment_epoch: The epoch of the target.
        target: The partitions that it should have.
        topic_ids: The topics of its current subscription, which may be newer than the target.
        subscription_changed: Whether it may still have partitions of topics that it no longer wants.
        is_free: Whether no member, not even this one, holds a partition.
        owned: The partitions that the client reports to own; None if it does not report them.
    """
    if is_due(member, assignment_epoch, owned):
        # An assignor's target may lag behind the subscription: do not assign what the client no longer wants.
        subscribed = {wanted for wanted in target if wanted[0] in topic_ids}
        move(member, assignment_epoch, subscribed, is_free, owned)
    elif subscription_changed:
        drop_unsubscribed(member, topic_ids, owned)


def is_due(member: GroupMember[H], assignment_epoch: int, owned: AbstractSet[H] | None) -> bool:
    """Whether a member can move on: it has not reached the target, and has given up what it had to."""
    waits = member.state is MemberState.UNREVOKED and still_owns(owned, member.pending_revocation)
    return not waits and not member.is_reconciled_to(assignment_epoch)


def still_owns(owned: AbstractSet[H] | None, given_up: Iterable[H]) -> bool:
    """Whether the client may still own any of these. If it does not report, it may own all of them."""
    return owned is None or any(partition in owned for partition in given_up)


def drop_unsubscribed(
    member: ConsumerMember, topic_ids: AbstractSet[bytes], owned: AbstractSet[TopicPartition] | None
) -> None:
    """Revoke topics that the member no longer wants, without waiting for the next target."""
    dropped = {
        partition: epoch for partition, epoch in member.assigned.items() if partition[0] not in topic_ids
    }
    if not dropped:
        return
    member.assigned = {
        partition: epoch for partition, epoch in member.assigned.items() if partition not in dropped
    }
    member.advance(member.member_epoch)
    pending = member.pending_revocation | dropped
    if still_owns(owned, pending):
        member.pending_revocation = pending
        member.state = MemberState.UNREVOKED


def move(
    member: GroupMember[H],
    assignment_epoch: int,
    target: AbstractSet[H],
    is_free: IsFree[H],
    owned: AbstractSet[H] | None,
    unconfirmed: AbstractSet[H] = frozenset(),
) -> None:
    """Revoke what is not in the target; once nothing is left to revoke, assign what is free.

    Args:
        member: See `reconcile`.
        assignment_epoch: The epoch of the target.
        target: What it should have.
        is_free: Whether no member holds a partition or a task.
        owned: What the client reports to own; None if it does not report it.
        unconfirmed: What the member loses without having to confirm it.
    """
    keep = {partition: epoch for partition, epoch in member.assigned.items() if partition in target}
    revoke = {
        partition: epoch
        for partition, epoch in member.assigned.items()
        if partition not in target and partition not in unconfirmed
    }
    if revoke and still_owns(owned, revoke):
        # Earlier revocations are complete, else `reconcile` would not have called this. The member stays at
        # its epoch and gets nothing new: it may commit offsets of these partitions until it confirms.
        member.assigned, member.pending_revocation = keep, revoke
        member.state = MemberState.UNREVOKED
        member.advance(member.member_epoch)
        return
    mine = member.pending_revocation
    wanted = [partition for partition in target if partition not in keep]
    # A partition that it has just given up may be in its newest target again: it is held by the member
    # itself.
    added = [partition for partition in wanted if is_free(partition) or partition in mine]
    member.assigned = keep | dict.fromkeys(added, assignment_epoch)
    member.pending_revocation = {}
    waits = len(added) < len(wanted)
    # The epoch advances even if other members still hold some partitions; later heartbeats add these.
    member.state = MemberState.UNRELEASED if waits else MemberState.STABLE
    member.advance(assignment_epoch)
