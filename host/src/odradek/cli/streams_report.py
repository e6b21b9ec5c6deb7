"""Streams groups in the output of ``odradek groups``: the table of members of kafka-streams-groups.sh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.cli.columns import Column, Table
from odradek.cli.group_report import WIDE, View, member_object
from odradek.client.group_descriptions import GroupDescription, MemberDescription, TasksByRole

GROUP: Column = ("GROUP", WIDE)
EPOCHS: Sequence[Column] = (("TARGET-ASSIGNMENT-EPOCH", 25), ("TOPOLOGY-EPOCH", WIDE))
MEMBER: Column = ("MEMBER", WIDE)
MEMBER_EPOCH: Sequence[Column] = (("MEMBER-PROTOCOL", WIDE), ("MEMBER-EPOCH", WIDE))
REST: Sequence[Column] = (("PROCESS", WIDE), ("CLIENT-ID", WIDE), ("ASSIGNMENTS", 0))
PROTOCOL = "streams"
"""The tool's word for members; ``classic`` ones are not in streams groups yet."""


def streams_members_view(group: GroupDescription, verbose: bool) -> View:
    """The members of a streams group, with their tasks."""
    columns = [GROUP, *EPOCHS, MEMBER, *MEMBER_EPOCH, *REST] if verbose else [GROUP, MEMBER, *REST]
    rows = [cells(group, member, verbose) for member in group.members]
    objects = (streams_member_object(group, member) for member in group.members)
    return objects, ["", *Table(columns, rows).lines()] if rows else []


def cells(group: GroupDescription, member: MemberDescription, verbose: bool) -> list[object]:
    """One row of the table."""
    run = member.streams
    assert run is not None
    tasks = tasks_text(run.tasks, "")
    if not verbose:
        return [group.group_id, member.member_id, run.process_id, member.client_id, tasks or None]
    return [
        group.group_id,
        group.assignment_epoch,
        group.topology_epoch,
        member.member_id,
        PROTOCOL,
        member.epoch,
        run.process_id,
        member.client_id,
        " ".join(text for text in (tasks, tasks_text(run.target, "TARGET-")) if text) or None,
    ]


def tasks_text(tasks: TasksByRole, prefix: str) -> str:
    """``ACTIVE: 0:[0,1]; STANDBY: 0:[2];``; empty for no tasks."""
    return " ".join(
        f"{prefix}{role.upper()}: " + " ".join(map(subtopology_text, listed, listed.values()))
        for role, listed in tasks.items()
        if listed
    )


def subtopology_text(subtopology: str, partitions: Sequence[int]) -> str:
    return f"{subtopology}:[{','.join(map(str, partitions))}];"


def streams_member_object(group: GroupDescription, member: MemberDescription) -> Mapping[str, Any]:
    """A member for scripts."""
    assert member.streams is not None
    return member_object(group, member) | {
        "process_id": member.streams.process_id,
        "topology_epoch": group.topology_epoch,
        "current_tasks": member.streams.tasks,
        "target_tasks": member.streams.target,
    }
