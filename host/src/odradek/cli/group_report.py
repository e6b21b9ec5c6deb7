"""The output of ``odradek groups --describe``: the tables of kafka-consumer-groups.sh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from odradek.cli.columns import Column, Table
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.group_descriptions import CONSUMER, SHARE, STREAMS, GroupDescription, MemberDescription
from odradek.client.group_offsets import GROUPS_AT_ONCE, CommittedOffset
from odradek.client.leaders import Partition
from odradek.client.resources import EARLIEST, LATEST, Offset
from odradek.lag.time_search import TimeSearch

View = tuple[Iterable[Mapping[str, Any]], list[str]]
"""A table as JSON objects, which have all columns, and as lines."""
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
WIDE = 15
OFFSETS: Sequence[Column] = (
    ("GROUP", WIDE),
    ("TOPIC", WIDE),
    ("PARTITION", 10),
    ("LEADER-EPOCH", WIDE),
    ("CURRENT-OFFSET", WIDE),
    ("LOG-END-OFFSET", WIDE),
    ("LAG", WIDE),
    ("LAG-SECONDS", WIDE),
    ("CONSUMER-ID", WIDE),
    ("HOST", WIDE),
    ("CLIENT-ID", 0),
)
LEADER_EPOCH = 3
"""Index of the column that is shown only with ``--verbose``."""
LAG_SECONDS = 7
"""Index of the column that is shown only with ``--time``."""
MEMBERS: Sequence[Column] = (
    ("GROUP", WIDE),
    ("CONSUMER-ID", WIDE),
    ("GROUP-INSTANCE-ID", 17),
    ("HOST", WIDE),
    ("CLIENT-ID", WIDE),
    ("#PARTITIONS", WIDE),
)
INSTANCE_ID = 2
"""Index of the column that is shown only if a member has a group instance id."""
ASSIGNMENTS: Sequence[Column] = (
    ("CURRENT-EPOCH", WIDE),
    ("CURRENT-ASSIGNMENT", 20),
    ("TARGET-EPOCH", WIDE),
    ("TARGET-ASSIGNMENT", 20),
)
STATE: Sequence[Column] = (
    ("GROUP", WIDE),
    ("COORDINATOR (ID)", 25),
    ("ASSIGNMENT-STRATEGY", 20),
    ("STATE", 20),
)
EPOCHS: Sequence[Column] = (("GROUP-EPOCH", WIDE), ("TARGET-ASSIGNMENT-EPOCH", 25))


def notice(group: GroupDescription) -> str | None:
    """A note on the state of the group, printed before its table; None if there is none."""
    kind = group.protocol_type if group.protocol_type in (SHARE, STREAMS) else CONSUMER
    named = f"{kind.capitalize()} group '{group.group_id}'"
    if group.state == "Empty":
        return f"{named} has no active members."
    if group.state in REBALANCING:
        return f"Warning: {named} is rebalancing."
    return None


class Offsets(NamedTuple):
    """The offsets of a group, and the ends of the partitions that some groups read."""

    committed: Mapping[Partition, CommittedOffset]
    ends: Mapping[Partition, Offset]


def read_offsets(
    admin: AdminClient, groups: Sequence[GroupDescription]
) -> Iterator[tuple[GroupDescription, Offsets | RequestFailed]]:
    """The offsets of each group: committed ones first, so that a lag is not negative while groups read.

    The groups of a coordinator are in one request, and the partitions of a leader, too. A block of groups is
    read at a time, which bounds what is held.
    """
    for first in range(0, len(groups), GROUPS_AT_ONCE):
        block = groups[first : first + GROUPS_AT_ONCE]
        committed = admin.offset_fetch_of_each([group.group_id for group in block])
        read = {at for found in committed.values() if not isinstance(found, RequestFailed) for at in found}
        read.update(at for group in block for member in group.members for at in member.assignment)
        ends = admin.list_offsets(dict.fromkeys(sorted(read), LATEST), known_only=True) if read else {}
        for group in block:
            found = committed[group.group_id]
            yield group, found if isinstance(found, RequestFailed) else Offsets(found, ends)


def offsets_view(
    admin: AdminClient, group: GroupDescription, offsets: Offsets, verbose: bool, now_ms: int | None = None
) -> View:
    """The assigned partitions, members with the most partitions first, then the unassigned partitions.

    Args:
        admin: Of the cluster.
        group: The group.
        offsets: Of the group.
        verbose: Show the leader epochs.
        now_ms: The time, epoch milliseconds, to show the lag in time; None not to show it.
    """
    committed, ends = offsets
    owned = [
        (partition, member)
        for member in sorted(group.members, key=lambda member: -len(member.assignment))
        for partition in member.assignment
    ]
    left = sorted(committed.keys() - {partition for partition, _ in owned})
    rows: list[tuple[Partition, MemberDescription | None]] = [*owned]
    rows += [(partition, None) for partition in left]
    behind = {
        partition: committed[partition].offset
        for partition, _ in rows
        if partition in committed and partition in ends
        if committed[partition].offset < ends[partition].offset
    }
    ages_s = {} if now_ms is None else lag_times(admin, behind, now_ms)
    cells: list[list[object]] = []
    for partition, member in rows:
        at, end = committed.get(partition), ends.get(partition)
        age_s = ages_s.get(partition) if partition in behind else 0 if at and end else None
        cells.append(
            [
                group.group_id,
                *partition,
                at and at.leader_epoch,
                at and at.offset,
                end and end.offset,
                end.offset - at.offset if at and end else None,
                age_s,
                *((member.member_id, member.host, member.client_id) if member else (None, None, None)),
            ]
        )
    full = Table(OFFSETS, cells) if now_ms is not None else Table(OFFSETS, cells).without(LAG_SECONDS)
    shown = full if verbose else full.without(LEADER_EPOCH)
    return full.objects(), ["", *shown.lines()] if rows else []


def lag_times(admin: AdminClient, offsets: Mapping[Partition, int], now_ms: int) -> dict[Partition, float]:
    """The age of the first record at or after each offset in seconds, by its timestamp.

    All partitions are asked for in the same requests. One whose records have no timestamps is left out.
    """
    starts = admin.list_offsets(dict.fromkeys(offsets, EARLIEST), known_only=True) if offsets else {}
    searches = {
        partition: TimeSearch(max(offsets[partition], start.offset), now_ms)
        for partition, start in starts.items()
    }
    while asked := {each: at for each, search in searches.items() if (at := search.asks_ms) is not None}:
        found = admin.list_offsets(asked, known_only=True)
        for partition in asked:
            if partition in found:
                searches[partition].answered(found[partition].offset, found[partition].timestamp_ms)
            else:
                del searches[partition]
    return {
        partition: max(now_ms - search.found_ms, 0) / 1_000
        for partition, search in searches.items()
        if search.found_ms is not None
    }


def members_view(group: GroupDescription, verbose: bool) -> View:
    """The table of the members."""
    columns = [*MEMBERS, *(ASSIGNMENTS if verbose else ())]
    mixed = {True, False} <= {member.upgraded for member in group.members}
    if verbose and mixed:
        columns.append(("UPGRADED", 0))
    rows: list[Sequence[object]] = [
        [
            group.group_id,
            member.member_id,
            member.instance_id or "",
            member.host,
            member.client_id,
            len(member.assignment),
            *(assignment_cells(group, member) if verbose else ()),
            *([str(member.upgraded).lower()] if verbose and mixed else ()),
        ]
        for member in group.members
    ]
    shown = Table(columns, rows)
    if not any(member.instance_id for member in group.members):
        shown = shown.without(INSTANCE_ID)
    return (member_object(group, member) for member in group.members), ["", *shown.lines()]


def member_object(group: GroupDescription, member: MemberDescription) -> dict[str, Any]:
    """A member for scripts."""
    return {
        "group": group.group_id,
        "consumer_id": member.member_id,
        "group_instance_id": member.instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "current_epoch": member.epoch,
        "current_assignment": partition_objects(member.assignment),
        "target_epoch": group.assignment_epoch,
        "target_assignment": None if member.target is None else partition_objects(member.target),
        "upgraded": member.upgraded,
    }


def partition_objects(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    """Partitions for scripts."""
    return [{"topic": topic, "partition": index} for topic, index in sorted(partitions)]


def assignment_cells(group: GroupDescription, member: MemberDescription) -> list[object]:
    """The current and the target assignment of a member, each after its epoch."""
    return [
        member.epoch,
        partitions_text(member.assignment),
        group.assignment_epoch,
        partitions_text(member.target or ()),
    ]


def partitions_text(partitions: Iterable[Partition]) -> str | None:
    """``orders:0,1;payments:0``; None for no partitions."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return ";".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in topics.items()) or None


def state_view(group: GroupDescription, verbose: bool) -> View:
    """The table of the group's state."""
    columns = [*STATE, *(EPOCHS if verbose else ()), ("#MEMBERS", 0)]
    row: list[object] = [
        group.group_id,
        f"{group.coordinator.address}  ({group.coordinator.id})",
        group.assignor or None,
        group.state,
        *((group.epoch, group.assignment_epoch) if verbose else ()),
        len(group.members),
    ]
    shown = {
        "group": group.group_id,
        "coordinator": str(group.coordinator.address),
        "coordinator_id": group.coordinator.id,
        "assignment_strategy": group.assignor or None,
        "state": group.state,
        "group_epoch": group.epoch,
        "target_assignment_epoch": group.assignment_epoch,
        "members": len(group.members),
    }
    return [shown], ["", *Table(columns, [row]).lines()]
