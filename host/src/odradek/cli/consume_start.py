"""The partitions that ``odradek consume`` reads, and the offsets that it starts from."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.offset_reset import Offsets, listed, within
from odradek.cli.usage import topic_pattern
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition
from odradek.client.resources import EARLIEST, LATEST
from odradek.wire.error_code import ErrorCode

FAILING = "Error while executing consume command :"
NAMED_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}


def start_positions(admin: AdminClient, options: Mapping[str, Any]) -> Offsets:
    """The offset to start from, by partition. A terminal is told if stored records are not printed.

    Raises:
        CommandFailed: There is no such topic, or the group has members.
        ClientError: There is no such partition.
    """
    partitions = chosen(admin, options)
    default = EARLIEST if options["from_beginning"] else LATEST
    if options["offset"] is not None:
        return at_offset(admin, partitions, options["offset"])
    committed = committed_offsets(admin, options["group"], partitions) if options["group"] else {}
    other = [partition for partition in partitions if partition not in committed]
    if other and default == LATEST and sys.stderr.isatty():
        click.echo("Waiting for new records; --from-beginning prints the stored ones too", err=True)
    return (within(admin, committed) if committed else {}) | (listed(admin, other, default) if other else {})


def chosen(admin: AdminClient, options: Mapping[str, Any]) -> list[Partition]:
    """The partitions to read."""
    topic = options["topic"]
    if options["partition"] is not None:
        return [(topic, options["partition"])]
    if topic is not None:
        (described,) = admin.describe_topics([topic])
        return [(topic, row.index) for row in described.partitions]
    wanted = topic_pattern(options["include"], "--include")
    found = [
        (row.name, partition.partition_index)
        for row in admin.metadata().topics
        if row.name and not row.is_internal and wanted.fullmatch(row.name)
        for partition in row.partitions
    ]
    if not found:
        raise CommandFailed(f"{FAILING} no topic matches --include {options['include']}")
    return sorted(found)


def at_offset(admin: AdminClient, partitions: list[Partition], text: str) -> Offsets:
    """The offset of ``--offset``; one outside the log is moved to the nearest end.

    Raises:
        click.UsageError: The text is neither a number nor a name.
    """
    if text in NAMED_OFFSETS:
        return listed(admin, partitions, NAMED_OFFSETS[text])
    if not (text.isascii() and text.isdecimal()):
        raise click.UsageError(
            f"option --offset: expected earliest, latest or a number that is not negative, found {text!r}"
        )
    return within(admin, dict.fromkeys(partitions, int(text)))


def committed_offsets(admin: AdminClient, group: str, partitions: list[Partition]) -> Offsets:
    """The committed offsets of a group that has no members.

    Raises:
        CommandFailed: It has members, which own the partitions.
    """
    outcome = admin.describe_groups([group])[group]
    if isinstance(outcome, RequestFailed):
        if outcome.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return {}
        raise outcome
    if outcome.members:
        raise CommandFailed(
            f"{FAILING} group {group} has {len(outcome.members)} members, and this command does not join "
            "groups: stop them, or leave out --group to read without committing"
        )
    found = admin.offset_fetch(group, partitions)
    return {at: offset.offset for at, offset in found.items()}
