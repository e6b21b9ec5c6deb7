"""One step of a member of a streams group towards its target.

After org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder. The steps are those of
`current_assignment`. Besides, a member that changes its role in a task keeps the state: a task that becomes a
standby is both until the member has stopped to process it, and a standby that becomes active stays until the
task is free.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from odradek.group.current_assignment import is_due, move, still_owns
from odradek.group.streams_group import StreamsGroup
from odradek.group.streams_member import StreamsMember
from odradek.group.task import Role, Task


def reconcile(group: StreamsGroup, member: StreamsMember, owned: AbstractSet[Task] | None) -> None:
    """Move a member towards its target as far as possible.

    Args:
        group: The member's.
        member: Its ``assigned``, ``pending_revocation``, ``state`` and epochs change.
        owned: The tasks that the client reports to own; None if it does not report them.
    """
    epoch = group.target.epoch
    if not is_due(member, epoch, owned):
        return
    target = group.target.of(member.member_id)
    member.assigned = member.assigned | dict.fromkeys(demoted(group, member, target), epoch)
    promoted = {
        task
        for task in member.assigned
        if task.role is not Role.ACTIVE and task not in target and task.as_(Role.ACTIVE) in target
    }
    revoked = [task for task in member.assigned if task not in target and task not in promoted]
    waits = bool(revoked) and still_owns(owned, revoked)
    kept = {task for task in promoted if waits or not group.is_free(task.as_(Role.ACTIVE), member)}
    move(
        member,
        epoch,
        target | kept,
        lambda task: group.is_free(task, member),
        owned,
        unconfirmed=promoted - kept,
    )


def demoted(group: StreamsGroup, member: StreamsMember, target: AbstractSet[Task]) -> set[Task]:
    """The standbys that a member gets at once, because it has the same tasks as active ones."""
    standbys = {task.as_(Role.STANDBY) for task in member.assigned if task.role is Role.ACTIVE}
    return {task for task in standbys & target if group.is_free(task, member)} - member.assigned.keys()
