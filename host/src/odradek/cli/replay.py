"""``odradek replay``: makes a forwarder of a running host deliver all pushes since a time again.

The command commits new offsets for the forwarder's group, and the host follows them. Any other tool that
resets the offsets of a group has the same effect.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option
from odradek.cli.offset_reset import at_time, show
from odradek.cli.reset_time import UNITS_MS, at_datetime_ms
from odradek.client.group_offsets import CommittedOffset

FAILING = "Error while executing replay command :"
GROUP_PREFIX = "odradek.forwarder."
SHORT_DURATION = re.compile(r"(\d+)([dhms])")


@click.command()
@click.option(
    "--plugin", required=True, metavar="NAME", help="The forwarder's name in its group, such as otlp."
)
@click.option(
    "--since",
    required=True,
    metavar="TIME",
    help="Start: a duration ago (90s, 30m, 2h, 7d) or a time (2026-05-17T10:00:00, UTC without an offset).",
)
@click.option("--dry-run", is_flag=True, help="Show the new offsets without committing them.")
@json_option
@cluster_options
def replay(
    plugin: str, since: str, dry_run: bool, as_json: bool, bootstrap_server: str, command_config: Path | None
) -> None:
    """Make a forwarder deliver all pushes since a time again."""
    since_ms = since_when_ms(since, int(time.time() * 1000))
    group = GROUP_PREFIX + plugin
    with connected(FAILING, bootstrap_server, command_config) as admin:
        partitions = sorted(admin.offset_fetch(group))
        if not partitions:
            raise CommandFailed(f"{FAILING} forwarder {plugin} not found: group {group} has no offsets")
        offsets = at_time(admin, partitions, since_ms)
        if not dry_run:
            admin.offset_commit(group, {at: CommittedOffset(offset) for at, offset in offsets.items()})
    show({group: offsets}, as_json)


def since_when_ms(text: str, now_ms: int) -> int:
    """The moment, in milliseconds since 1970, of a time or of a duration before now.

    Raises:
        click.UsageError: The text is neither a duration nor a time.
    """
    short = SHORT_DURATION.fullmatch(text)
    if short:
        return max(0, now_ms - int(short[1]) * UNITS_MS[short[2]])
    try:
        return at_datetime_ms(text)
    except click.UsageError:
        expected = "90s, 30m, 2h, 7d or YYYY-MM-DDThh:mm:ss"
        raise click.UsageError(f"option --since: expected {expected}, found {text!r}") from None
