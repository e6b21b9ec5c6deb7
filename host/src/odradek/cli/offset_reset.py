"""``odradek groups --reset-offsets``: where the offsets shall be, and committing them."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from odradek.cli.columns import table
from odradek.cli.group_scope import check_existing, chosen_groups, chosen_partitions, consumers
from odradek.cli.reset_file import ResetFile, read_reset_file
from odradek.cli.reset_time import at_datetime_ms, duration_ms
from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.group_descriptions import GroupDescription
from odradek.client.group_offsets import CommittedOffset
from odradek.client.leaders import Partition, partition_text
from odradek.client.resources import EARLIEST, LATEST
from odradek.wire.error_code import ErrorCode

Offsets = dict[Partition, int]
SCENARIOS = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_offset",
    "shift_by",
    "to_datetime",
    "by_duration",
    "from_file",
)
INACTIVE = ("Empty", "Dead")
COLUMNS = (("GROUP", 15), ("TOPIC", 15), ("PARTITION", 10), ("NEW-OFFSET", 0))


def reset_offsets(admin: AdminClient, options: Mapping[str, Any]) -> list[str]:
    """Print the new offsets, and commit them with ``--execute``; why some groups are left alone.

    Nothing is committed before all new offsets are known.
    """
    names = chosen_groups(admin, options)
    target = scenario(options, len(names) == 1, int(time.time() * 1000))
    if not options["dry_run"] and not options["execute"]:
        warn("nothing is committed without --execute; say --dry-run if that is wanted")
    inactive, failures = idle_groups(admin.describe_groups(names))
    plan = {group: target(admin, group) for group in inactive}
    if options["execute"]:
        for group, offsets in plan.items():
            admin.offset_commit(group, {at: CommittedOffset(offset) for at, offset in offsets.items()})
    show(plan, options["export"], len(names) == 1)
    return failures


def idle_groups(outcomes: Mapping[str, GroupDescription | RequestFailed]) -> tuple[list[str], list[str]]:
    """Groups without members, or that do not exist yet; and why the others must be left alone."""
    new = [group for group, outcome in outcomes.items() if is_new(outcome)]
    found, failures = consumers({group: outcomes[group] for group in outcomes if group not in new})
    failures += [
        f"group '{group.group_id}' must be inactive for its offsets to be reset, its state is {group.state}"
        for group in found
        if group.state not in INACTIVE
    ]
    return sorted([*new, *(group.group_id for group in found if group.state in INACTIVE)]), failures


def is_new(outcome: GroupDescription | RequestFailed) -> bool:
    """Whether there is no such group."""
    return isinstance(outcome, RequestFailed) and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND


def scenario(
    options: Mapping[str, Any], one_group: bool, now_ms: int
) -> Callable[[AdminClient, str], Offsets]:
    """What finds the new offsets of a group.

    Raises:
        click.UsageError: A time cannot be read.
        ConfigError: The file cannot be read.
    """
    if options["from_file"] is not None:
        file = read_reset_file(options["from_file"], one_group)
        return lambda admin, group: from_file(admin, group, file)
    finder = finder_of(options, now_ms)

    def target(admin: AdminClient, group: str) -> Offsets:
        partitions = scope(admin, group, options)
        check_existing(admin, partitions)
        return finder(admin, group, partitions) if partitions else {}

    return target


def scope(admin: AdminClient, group: str, options: Mapping[str, Any]) -> list[Partition]:
    """The partitions to reset, sorted."""
    if options["all_topics"]:
        return sorted(admin.offset_fetch(group))
    return sorted(chosen_partitions(admin, options["topic"]))


Finder = Callable[[AdminClient, str, list[Partition]], Offsets]


def finder_of(options: Mapping[str, Any], now_ms: int) -> Finder:
    """What finds new offsets for partitions of a group."""
    for option, special in (("to_earliest", EARLIEST), ("to_latest", LATEST)):
        if options[option]:
            return lambda admin, group, partitions: listed(admin, partitions, special)
    if options["to_current"]:
        return to_current
    if options["to_offset"] is not None:
        return lambda admin, group, partitions: within(admin, dict.fromkeys(partitions, options["to_offset"]))
    if options["shift_by"] is not None:
        return lambda admin, group, partitions: shifted(admin, group, partitions, options["shift_by"])
    if options["to_datetime"] is not None:
        time_ms = at_datetime_ms(options["to_datetime"])
    else:
        time_ms = now_ms - duration_ms(options["by_duration"])
    # below 0 a timestamp would be one of the special ones: no record is older than 1970
    return lambda admin, group, partitions: at_time(admin, partitions, max(0, time_ms))


def listed(admin: AdminClient, partitions: Iterable[Partition], timestamp_ms: int) -> Offsets:
    """The offsets at a time, or at one of the special ones."""
    found = admin.list_offsets(dict.fromkeys(partitions, timestamp_ms))
    return {partition: at.offset for partition, at in found.items()}


def at_time(admin: AdminClient, partitions: list[Partition], time_ms: int) -> Offsets:
    """The first record that is not older; behind the last one where all are older."""
    found = listed(admin, partitions, time_ms)
    older = [partition for partition, offset in found.items() if offset < 0]
    for partition in older:
        warn(f"{partition_text(partition)} has no record so late: the latest offset is used")
    return found | (listed(admin, older, LATEST) if older else {})


def to_current(admin: AdminClient, group: str, partitions: list[Partition]) -> Offsets:
    """Where the group is; behind the last record where it has no offset."""
    committed = admin.offset_fetch(group, partitions)
    missing = [partition for partition in partitions if partition not in committed]
    ends = listed(admin, missing, LATEST) if missing else {}
    return {at: committed[at].offset if at in committed else ends[at] for at in partitions}


def shifted(admin: AdminClient, group: str, partitions: list[Partition], by: int) -> Offsets:
    """Where the group is, and some records on.

    Raises:
        ClientError: The group has no offset of a partition.
    """
    committed = admin.offset_fetch(group, partitions)
    for partition in partitions:
        if partition not in committed:
            at = partition_text(partition)
            raise ClientError(f"group {group} has no committed offset of {at} that could be shifted")
    return within(admin, {partition: committed[partition].offset + by for partition in partitions})


def from_file(admin: AdminClient, group: str, file: ResetFile) -> Offsets:
    """What the file says of a group.

    Raises:
        click.UsageError: It says nothing.
    """
    offsets = file.get(group)
    if offsets is None:
        raise click.UsageError(f"option --from-file: nothing in it about group {group}")
    check_existing(admin, offsets)
    return within(admin, dict(sorted(offsets.items())))


def within(admin: AdminClient, wanted: Offsets) -> Offsets:
    """The offsets, moved to the nearest end of the log where they are outside."""
    first, last = listed(admin, wanted, EARLIEST), listed(admin, wanted, LATEST)
    moved = {}
    for partition, offset in wanted.items():
        nearest = moved[partition] = min(max(offset, first[partition]), last[partition])
        if nearest != offset:
            warn(f"{partition_text(partition)} has no offset {offset}: {nearest} is used")
    return moved


def warn(message: str) -> None:
    """Tell a person, not a script."""
    click.echo(f"WARN: {message}", err=True)


def show(plan: Mapping[str, Offsets], as_csv: bool, one_group: bool) -> None:
    """Print the new offsets: a table, or what ``--from-file`` reads."""
    rows = [[group, *at, offset] for group, offsets in plan.items() for at, offset in offsets.items()]
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(row[1:] if one_group else row for row in rows)
        return
    for line in ["", *table(COLUMNS, rows)]:
        click.echo(line)
