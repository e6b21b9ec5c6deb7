"""One step of a member towards its target; after
org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder.

A member first gives up what it should not have and stays at its epoch until it says that it did. Then it
moves to the target's epoch and gets what nobody else holds. It never gets a partition that another member was
told to have or has not yet given up: that is the whole of the protocol's safety.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_member import ConsumerMember, MemberState

IsFree = Callable[[TopicPartition], bool]
"""Whether no member holds a partition."""


def reconcile(
    member: ConsumerMember,
    *,
    assignment_epoch: int,
    target: AbstractSet[TopicPartition],
    topic_ids: AbstractSet[bytes],
    subscription_changed: bool,
    is_free: IsFree,
    owned: AbstractSet[TopicPartition] | None,
) -> None:
    """Move a member as far as it can go.

    Args:
        member: Its ``assigned``, ``pending_revocation``, ``state`` and epochs change.
        assignment_epoch: Of the target.
        target: What it should have.
        topic_ids: The topics it is subscribed to now: the target may be older.
        subscription_changed: Whether topics it no longer wants may still be assigned to it.
        is_free: Whether nobody holds a partition; the member itself counts as somebody.
        owned: What the client says that it has; None if it does not say.
    """
    revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    waits = revoking and still_owns(owned, member.pending_revocation)
    if not waits and not member.is_reconciled_to(assignment_epoch):
        subscribed = {wanted for wanted in target if wanted[0] in topic_ids}
        move(member, assignment_epoch, subscribed, is_free, owned)
    elif subscription_changed:
        drop_unsubscribed(member, topic_ids, owned)


def still_owns(owned: AbstractSet[TopicPartition] | None, given_up: Iterable[TopicPartition]) -> bool:
    """Whether the client may still have any of these. One that does not say may have everything."""
    return owned is None or any(partition in owned for partition in given_up)


def drop_unsubscribed(
    member: ConsumerMember, topic_ids: AbstractSet[bytes], owned: AbstractSet[TopicPartition] | None
) -> None:
    """Take away topics that the member no longer wants; no need to wait for the next target."""
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
        member.state = MemberState.UNREVOKED_PARTITIONS


def move(
    member: ConsumerMember,
    assignment_epoch: int,
    target: AbstractSet[TopicPartition],
    is_free: IsFree,
    owned: AbstractSet[TopicPartition] | None,
) -> None:
    """Give up first, then take."""
    keep = {partition: epoch for partition, epoch in member.assigned.items() if partition in target}
    revoke = {partition: epoch for partition, epoch in member.assigned.items() if partition not in target}
    if revoke and still_owns(owned, revoke):
        # what it had to give up before this, it has: `reconcile` would not have come here otherwise
        member.assigned, member.pending_revocation = keep, revoke
        member.state = MemberState.UNREVOKED_PARTITIONS
        member.advance(member.member_epoch)
        return
    mine = member.pending_revocation
    wanted = [partition for partition in target if partition not in keep]
    added = [partition for partition in wanted if is_free(partition) or partition in mine]
    member.assigned = keep | dict.fromkeys(added, assignment_epoch)
    member.pending_revocation = {}
    waits = len(added) < len(wanted)
    member.state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    member.advance(assignment_epoch)
