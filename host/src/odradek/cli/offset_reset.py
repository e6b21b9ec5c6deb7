"""``odradek groups --reset-offsets``: determines the new offsets and commits them."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from odradek.cli import listing
from odradek.cli.columns import Table
from odradek.cli.group_scope import check_existing, chosen_groups, chosen_partitions, consumers
from odradek.cli.positions import Positions, positions_of
from odradek.cli.reset_file import ResetFile, read_reset_file
from odradek.cli.reset_time import at_datetime_ms, duration_ms
from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.group_descriptions import GroupDescription
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
    """Print the new offsets and, with ``--execute``, commit them; return the reasons for skipped groups.

    Nothing is committed until the new offsets of all groups are known.
    """
    names = chosen_groups(admin, options)
    target = scenario(options, len(names) == 1, int(time.time() * 1000))
    if not options["dry_run"] and not options["execute"]:
        warn("nothing is committed without --execute; add --dry-run to omit this warning")
    described = admin.describe_groups(names)
    inactive, failures = idle_groups(described)
    groups = {group: positions_of(admin, group, described[group]) for group in inactive}
    plan = {group: target(admin, positions) for group, positions in groups.items()}
    if options["execute"]:
        for group, offsets in plan.items():
            groups[group].put(offsets)
    if options["export"]:
        export(plan, len(names) == 1)
    else:
        show(plan, options["as_json"])
    return failures


def idle_groups(outcomes: Mapping[str, GroupDescription | RequestFailed]) -> tuple[list[str], list[str]]:
    """The groups without members, which may not exist yet, and the reasons for skipping the others."""
    new = [group for group, outcome in outcomes.items() if is_new(outcome)]
    found, failures = consumers({group: outcomes[group] for group in outcomes if group not in new})
    failures += [
        f"group '{group.group_id}' is {group.state}: stop its members to reset its offsets"
        for group in found
        if group.state not in INACTIVE
    ]
    return sorted([*new, *(group.group_id for group in found if group.state in INACTIVE)]), failures


def is_new(outcome: GroupDescription | RequestFailed) -> bool:
    """Whether the group does not exist yet."""
    return isinstance(outcome, RequestFailed) and outcome.code is ErrorCode.GROUP_ID_NOT_FOUND


def scenario(
    options: Mapping[str, Any], one_group: bool, now_ms: int
) -> Callable[[AdminClient, Positions], Offsets]:
    """The function that determines the new offsets of a group.

    Raises:
        click.UsageError: A time cannot be read.
        ConfigError: The file cannot be read.
    """
    if options["from_file"] is not None:
        file = read_reset_file(options["from_file"], one_group)
        return lambda admin, positions: from_file(admin, positions.group, file)
    finder = finder_of(options, now_ms)

    def target(admin: AdminClient, positions: Positions) -> Offsets:
        every = options["all_topics"]
        partitions = positions.every() if every else sorted(chosen_partitions(admin, options["topic"]))
        check_existing(admin, partitions)
        return finder(admin, positions, partitions) if partitions else {}

    return target


Finder = Callable[[AdminClient, Positions, list[Partition]], Offsets]


def finder_of(options: Mapping[str, Any], now_ms: int) -> Finder:
    """The function that determines new offsets for partitions of a group."""
    for option, special in (("to_earliest", EARLIEST), ("to_latest", LATEST)):
        if options[option]:
            return lambda admin, _positions, partitions: listed(admin, partitions, special)
    if options["to_current"]:
        return to_current
    if options["to_offset"] is not None:
        return lambda admin, _, partitions: within(admin, dict.fromkeys(partitions, options["to_offset"]))
    if options["shift_by"] is not None:
        return lambda admin, positions, partitions: shifted(admin, positions, partitions, options["shift_by"])
    if options["to_datetime"] is not None:
        time_ms = at_datetime_ms(options["to_datetime"])
    else:
        time_ms = now_ms - duration_ms(options["by_duration"])
    # negative timestamps are special in ListOffsets, and no record is older than 1970
    return lambda admin, _, partitions: at_time(admin, partitions, max(0, time_ms))


def listed(admin: AdminClient, partitions: Iterable[Partition], timestamp_ms: int) -> Offsets:
    """The offsets at a timestamp, which may be a special one of ListOffsets."""
    found = admin.list_offsets(dict.fromkeys(partitions, timestamp_ms))
    return {partition: at.offset for partition, at in found.items()}


def at_time(admin: AdminClient, partitions: list[Partition], time_ms: int) -> Offsets:
    """The offset of the first record at or after a time; the end of the log if all records are older."""
    found = listed(admin, partitions, time_ms)
    older = [partition for partition, offset in found.items() if offset < 0]
    for partition in older:
        warn(f"{partition_text(partition)} has no record at or after this time: using the end of the log")
    return found | (listed(admin, older, LATEST) if older else {})


def to_current(admin: AdminClient, positions: Positions, partitions: list[Partition]) -> Offsets:
    """The present offsets; the end of the log for partitions without one."""
    present = positions.of(partitions)
    missing = [partition for partition in partitions if partition not in present]
    ends = listed(admin, missing, LATEST) if missing else {}
    return {at: present[at] if at in present else ends[at] for at in partitions}


def shifted(admin: AdminClient, positions: Positions, partitions: list[Partition], by: int) -> Offsets:
    """The present offsets moved by a number of records.

    Raises:
        ClientError: The group has no offset for a partition.
    """
    present = positions.of(partitions)
    for at in partitions:
        if at not in present:
            where = f"group {positions.group} has no committed offset for {partition_text(at)}"
            raise ClientError(f"{where}: --shift-by needs one")
    return within(admin, {at: present[at] + by for at in partitions})


def from_file(admin: AdminClient, group: str, file: ResetFile) -> Offsets:
    """The offsets of a group in the file.

    Raises:
        click.UsageError: The file does not name the group.
    """
    offsets = file.get(group)
    if offsets is None:
        raise click.UsageError(f"option --from-file: the file has no line for group {group}")
    check_existing(admin, offsets)
    return within(admin, dict(sorted(offsets.items())))


def within(admin: AdminClient, wanted: Offsets) -> Offsets:
    """The offsets; one outside the log is moved to the nearest end of it."""
    first, last = listed(admin, wanted, EARLIEST), listed(admin, wanted, LATEST)
    moved = {}
    for partition, offset in wanted.items():
        nearest = moved[partition] = min(max(offset, first[partition]), last[partition])
        if nearest != offset:
            warn(f"{partition_text(partition)} has no offset {offset}: using {nearest}")
    return moved


def warn(message: str) -> None:
    """Print a warning to stderr, so that scripts can parse stdout."""
    click.echo(f"WARN: {message}", err=True)


def export(plan: Mapping[str, Offsets], one_group: bool) -> None:
    """Print the new offsets as CSV for ``--from-file``."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows(row[1:] if one_group else row for row in planned(plan))


def show(plan: Mapping[str, Offsets], as_json: bool) -> None:
    """Print the new offsets."""
    shown = Table(COLUMNS, planned(plan))
    listing.show(as_json, shown.objects(), ["", *shown.lines()])


def planned(plan: Mapping[str, Offsets]) -> list[list[object]]:
    """The new offsets as rows."""
    return [[group, *at, offset] for group, offsets in plan.items() for at, offset in offsets.items()]
