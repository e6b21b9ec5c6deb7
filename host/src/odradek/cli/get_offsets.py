"""``odradek get-offsets``: the options and output of kafka-get-offsets.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr.
"""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.cli.partition_filter import Rule, topic_partition_rules, topic_rules
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.leaders import Partition, partition_text
from odradek.client.resources import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)

FAILING = "Error occurred:"
TIMES = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}


@click.command("get-offsets")
@cluster_options
@click.option("--topic", metavar="REGEX", help="The topics; all by default.")
@click.option("--partitions", metavar="P1,P2", help="Partition ids; all by default.")
@click.option(
    "--topic-partitions",
    metavar="T1:1,T2:0-3,T3",
    help="Topics, each with a partition or a range without its end: N, N-M, N-, -M; all by default.",
)
@click.option(
    "--time",
    "when",
    default="latest",
    show_default=True,
    metavar="TIME",
    help=f"The offset of the first record at or after this time in ms since 1970, or {', '.join(TIMES)}.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out internal topics.")
@json_option
def get_offsets(
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    when: str,
    exclude_internal_topics: bool,
    as_json: bool,
    bootstrap_server: str,
    command_config: Path | None,
) -> None:
    """Show offsets of partitions: the ends of the logs by default."""
    if topic_partitions is not None and (topic or partitions):
        raise click.UsageError("option --topic-partitions can't be used with --topic or --partitions")
    rules = (
        topic_rules(topic, partitions)
        if topic_partitions is None
        else topic_partition_rules(topic_partitions)
    )
    time_ms = time_of(when)
    with connected(FAILING, bootstrap_server, command_config) as admin:
        wanted = selected(admin, rules, exclude_internal_topics)
        outcomes = admin.list_offsets_of_each(dict.fromkeys(wanted, time_ms))
    found: list[tuple[Partition, int]] = []
    for partition, outcome in outcomes.items():
        if isinstance(outcome, RequestFailed):
            skipped = (
                f"Skip getting offsets for topic-partition {partition_text(partition)} due to: {outcome}"
            )
            click.echo(skipped, err=True)
        elif outcome.offset >= 0:
            found.append((partition, outcome.offset))
    show(
        as_json,
        ({"topic": name, "partition": index, "offset": offset} for (name, index), offset in found),
        (f"{name}:{index}:{offset}" for (name, index), offset in found),
    )


def time_of(text: str) -> int:
    """The timestamp for ListOffsets: in ms, or one of its special values.

    Raises:
        click.UsageError: The text is neither a name nor a number.
    """
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        names = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise click.UsageError(
            f"option --time: malformed time argument {text}; use {names}, or a time in ms since 1970"
        ) from None


def selected(admin: AdminClient, rules: list[Rule], exclude_internal: bool) -> list[Partition]:
    """The partitions that match one of the rules, sorted.

    Raises:
        CommandFailed: No partition matches.
    """
    found = sorted(
        partition
        for topic in admin.metadata().topics
        if topic.name and not (topic.is_internal and exclude_internal)
        for row in topic.partitions
        if any(rule.matches(partition := (topic.name, row.partition_index)) for rule in rules)
    )
    if not found:
        raise CommandFailed(f"{FAILING} Could not match any topic-partitions with the specified filters")
    return found
