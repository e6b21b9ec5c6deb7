"""``odradek groups``: the options and output of kafka-consumer-groups.sh, for any broker; share and streams
groups, too.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1). A failure, even for only one
of several groups, gives one line on stderr and exit status 1 (the tool: a line on stdout and status 0). Rows
are sorted by group, topic and partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from odradek.cli.columns import Table
from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.group_report import members_view, notice, offsets_view, read_offsets, state_view
from odradek.cli.group_scope import chosen_groups, chosen_partitions, consumers
from odradek.cli.listing import json_option, show
from odradek.cli.offset_reset import SCENARIOS, reset_offsets
from odradek.cli.positions import is_share_group
from odradek.cli.share_report import share_offsets_view
from odradek.cli.streams_report import streams_members_view
from odradek.cli.usage import at_most_one, flag, one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.group_descriptions import SHARE, STREAMS, GroupDescription
from odradek.client.leaders import Partition
from odradek.client.share_offsets import delete_share_offsets, share_offsets
from odradek.waiting.clock import SystemClock

FAILING = "Error: Executing consumer group command failed due to"
ACTIONS = ("list_names", "describe", "delete", "reset_offsets", "delete_offsets")
RESET = ("reset_offsets",)
GOES_WITH = {
    "group": ("describe", "delete", "reset_offsets", "delete_offsets"),
    "all_groups": ("describe", "delete", "reset_offsets"),
    "offsets": ("describe",),
    "time": ("describe",),
    "members": ("describe",),
    "verbose": ("describe",),
    "state": ("list_names", "describe"),
    "type": ("list_names",),
    "topic": ("reset_offsets", "delete_offsets"),
    "as_json": ("list_names", "describe", "reset_offsets", "delete_offsets"),
    **dict.fromkeys(("all_topics", "dry_run", "execute", "export", *SCENARIOS), RESET),
}
STATES = (
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "NotReady",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)
SHARE_TYPE = "Share"
STREAMS_TYPE = "Streams"
TYPES = ("Classic", "Consumer", SHARE_TYPE, STREAMS_TYPE)
LEAST_WIDTH = 15


@click.command("groups")
@cluster_options
@click.option("--list", "list_names", is_flag=True, help="List the groups.")
@click.option("--describe", is_flag=True, help="Show offsets and lag, members, or state.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members.")
@click.option("--reset-offsets", is_flag=True, help="Move offsets of groups that have no members.")
@click.option("--delete-offsets", is_flag=True, help="Delete offsets of topics that no member reads.")
@click.option("--group", multiple=True, metavar="GROUP", help="The group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="All consumer groups; no share and no streams groups.")
@click.option("--offsets", is_flag=True, help="With --describe: show offsets and lag; the default.")
@click.option("--time", is_flag=True, help="With --describe: show the lag in seconds too.")
@click.option("--members", is_flag=True, help="With --describe: show the members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="STATES",
    help="With --describe: show the state. With --list: show states, or list only groups in STATES, such as "
    "stable,empty.",
)
@click.option(
    "--type",
    is_flag=False,
    flag_value="",
    metavar="TYPES",
    help="With --list: show types, or list only groups of TYPES: classic,consumer,share,streams.",
)
@click.option("--verbose", is_flag=True, help="With --describe: show epochs and assignments too.")
@click.option(
    "--topic",
    multiple=True,
    metavar="TOPIC[:P1,P2]",
    help="The partitions, all of a topic by default; may be repeated.",
)
@click.option("--all-topics", is_flag=True, help="All partitions for which the group has offsets.")
@click.option("--to-earliest", is_flag=True, help="Reset to the first record.")
@click.option("--to-latest", is_flag=True, help="Reset to the end of the log.")
@click.option(
    "--to-current", is_flag=True, help="Keep committed offsets; without one, reset to the end of the log."
)
@click.option("--to-offset", type=click.IntRange(0), metavar="OFFSET", help="Reset to this offset.")
@click.option("--shift-by", type=int, metavar="N", help="Move by N records; N may be negative.")
@click.option(
    "--to-datetime",
    metavar="TIME",
    help="Reset to this time, YYYY-MM-DDThh:mm:ss.sss, UTC without an offset.",
)
@click.option("--by-duration", metavar="DURATION", help="Reset to a time this long ago, PnDTnHnMnS.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Reset to the offsets in a CSV file, as --export prints it.",
)
@click.option("--dry-run", is_flag=True, help="Show the new offsets without committing them; the default.")
@click.option("--execute", is_flag=True, help="Commit the new offsets.")
@click.option("--export", is_flag=True, help="Print the new offsets as CSV.")
@click.option(
    "--timeout",
    type=click.IntRange(1),
    metavar="MS",
    help="Request timeout; default: request.timeout.ms of --command-config, or 30000.",
)
@json_option
def groups(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, describe and delete groups of any broker, and move their offsets.

    Give exactly one of --list, --describe, --delete, --reset-offsets and --delete-offsets.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    check, work = RUN[action]
    check(options)
    with connected(FAILING, bootstrap_server, command_config, options["timeout"]) as admin:
        fail(work(admin, options))


def fail(failures: Sequence[str]) -> None:
    """Fail with all failures in one message, if there are any.

    Raises:
        CommandFailed: There is at least one failure.
    """
    if failures:
        raise CommandFailed(f"{FAILING} {'; '.join(failures)}")


def check_list(options: dict[str, Any]) -> None:
    """Check that states and types exist, and store them in Kafka's spelling."""
    options["states"] = words(options["state"], STATES, "--state")
    options["types"] = words(options["type"], TYPES, "--type")


def words(text: str | None, known: Sequence[str], option: str) -> list[str]:
    """Parse a comma-separated list of known words, in upper or lower case.

    Raises:
        click.UsageError: A word is not known.
    """
    spelled = {word.lower(): word for word in known}
    wanted = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in wanted:
        if word.lower() not in spelled:
            raise click.UsageError(f"option {option}: expected one of {', '.join(known)}, found {word!r}")
    return [spelled[word.lower()] for word in wanted]


def check_describe(options: dict[str, Any]) -> None:
    """Check that groups are named, and that at most one view is requested."""
    check_groups(options)
    at_most_one(options, ("offsets", "members", "state"))
    at_most_one(options, ("time", "members", "state"))
    if options["state"]:
        raise click.UsageError("option --state takes no value with --describe")


def check_groups(options: dict[str, Any]) -> None:
    """Check that groups are named in exactly one way."""
    if at_most_one(options, ("group", "all_groups")) is None:
        raise click.UsageError("one of --group or --all-groups must be specified")


def check_reset(options: dict[str, Any]) -> None:
    """Check that groups, exactly one target and, except with ``--from-file``, one scope are given."""
    check_groups(options)
    at_most_one(options, ("dry_run", "execute"))
    at_most_one(options, ("export", "as_json"))
    if at_most_one(options, SCENARIOS) is None:
        raise click.UsageError(f"one of {', '.join(map(flag, SCENARIOS))} must be specified")
    scope = at_most_one(options, ("all_topics", "topic"))
    if options["from_file"] is None and scope is None:
        raise click.UsageError("one of --all-topics or --topic must be specified")
    if options["from_file"] is not None and scope is not None:
        raise click.UsageError(f"option {flag(scope)} can't be used with --from-file")


def check_delete_offsets(options: dict[str, Any]) -> None:
    """Check that exactly one group and at least one topic are given."""
    if len(options["group"]) != 1 or not options["topic"]:
        raise click.UsageError("one --group and at least one --topic must be specified with --delete-offsets")


def list_names(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Print the groups, with their types and states if requested."""
    every = admin.list_groups(states=options["states"], types=options["types"])
    shown = {SHARE_TYPE, STREAMS_TYPE} & set(options["types"])
    wanted = (group for group in every if group.consumes or group.type in shown)
    found = sorted(wanted, key=lambda group: group.group_id)
    if options["as_json"] or (options["state"] is None and options["type"] is None):
        objects = ({"group": each.group_id, "type": each.type, "state": each.state} for each in found)
        show(options["as_json"], objects, (each.group_id for each in found))
        return []
    width = max([LEAST_WIDTH, *(len(group.group_id) for group in found)]) + 10
    columns, rows = [("GROUP", width)], [[group.group_id] for group in found]
    for option, heading in (("type", "TYPE"), ("state", "STATE")):
        if options[option] is not None:
            columns.append((heading, 20))
            for row, group in zip(rows, found, strict=True):
                row.append(getattr(group, option))
    for line in Table(columns, rows).lines():
        click.echo(line)
    return []


def describe(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Print the groups; return the reasons for those that cannot be shown."""
    found, failures = consumers(admin.describe_groups(chosen_groups(admin, options)))
    verbose = options["verbose"]
    if options["members"] or options["state"] is not None:
        for group in found:
            tell(group)
            view = members_view if group.protocol_type != STREAMS else streams_members_view
            show(options["as_json"], *(view if options["members"] else state_view)(group, verbose))
        return failures
    for group in found:
        if group.protocol_type == SHARE:
            tell(group)
            starts = share_offsets(admin, group.group_id)
            show(options["as_json"], *share_offsets_view(group, starts, verbose))
    for group, offsets in read_offsets(admin, [each for each in found if each.protocol_type != SHARE]):
        if isinstance(offsets, RequestFailed):
            failures.append(str(offsets))
            continue
        tell(group)
        now_ms = SystemClock().now_ms() if options["time"] else None
        show(options["as_json"], *offsets_view(admin, group, offsets, verbose, now_ms))
    return failures


def tell(group: GroupDescription) -> None:
    """Print the note on the state of a group, if there is one."""
    said = notice(group)
    if said:
        click.echo(said, err=True)


def delete(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Delete groups; return the reasons for those that could not be deleted."""
    outcomes = admin.delete_groups(chosen_groups(admin, options))
    failures = [str(outcome) for outcome in outcomes.values() if outcome]
    deleted = ", ".join(f"'{group}'" for group, outcome in outcomes.items() if outcome is None)
    if not failures:
        click.echo(f"Deletion of requested consumer groups ({deleted}) was successful.")
    elif deleted:
        click.echo(f"These consumer groups were deleted successfully: {deleted}")
    return failures


def delete_offsets(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Delete offsets and print the result for each."""
    (group,) = options["group"]
    outcomes = deleted(admin, group, options["topic"])
    failures = sorted({outcome.code.name for outcome in outcomes.values() if outcome})
    if not failures:
        succeeded = f"Request succeeded for deleting offsets from group {group}."
        click.echo(succeeded, err=options["as_json"])
    rows = [[*partition, status(outcome)] for partition, outcome in outcomes.items()]
    shown = Table([("TOPIC", LEAST_WIDTH), ("PARTITION", 10), ("STATUS", 15)], rows)
    show(options["as_json"], shown.objects(), ["", *shown.lines()])
    return [f"{group}: {', '.join(failures)}"] if failures else []


def deleted(
    admin: AdminClient, group: str, topics: Sequence[str]
) -> Mapping[Partition, RequestFailed | None]:
    """Delete offsets; a share group has them by topic. Returns the result of each."""
    partitions = sorted(chosen_partitions(admin, topics))
    if not is_share_group(admin.describe_groups([group])[group]):
        return admin.offset_delete(group, partitions)
    found = delete_share_offsets(admin, group, sorted({topic for topic, _ in partitions}))
    return {(topic, index): found[topic] for topic, index in partitions}


def status(outcome: RequestFailed | None) -> str:
    """The result for one offset, as the tool prints it."""
    return "Successful" if outcome is None else f"Error: {outcome.code.name}"


RUN = {
    "list_names": (check_list, list_names),
    "describe": (check_describe, describe),
    "delete": (check_groups, delete),
    "reset_offsets": (check_reset, reset_offsets),
    "delete_offsets": (check_delete_offsets, delete_offsets),
}
"""By action: the check of the command line, and the work."""
