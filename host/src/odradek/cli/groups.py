"""``odradek groups``: the options and the output of kafka-consumer-groups.sh, against any broker.

Differs from the tool: a command line that cannot be used is exit status 2 (1 there); when something failed,
for one group of many too, there is one line on stderr and exit status 1 (a line on stdout and 0 there); rows
are in the order of groups, topics and partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from odradek.cli.columns import table
from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.group_report import member_lines, notice, offset_lines, state_lines
from odradek.cli.group_scope import chosen_groups, chosen_partitions, consumers
from odradek.cli.offset_reset import SCENARIOS, reset_offsets
from odradek.cli.usage import at_most_one, flag, one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed

FAILING = "Error: Executing consumer group command failed due to"
ACTIONS = ("list_names", "describe", "delete", "reset_offsets", "delete_offsets")
RESET = ("reset_offsets",)
GOES_WITH = {
    "group": ("describe", "delete", "reset_offsets", "delete_offsets"),
    "all_groups": ("describe", "delete", "reset_offsets"),
    "offsets": ("describe",),
    "members": ("describe",),
    "verbose": ("describe",),
    "state": ("list_names", "describe"),
    "type": ("list_names",),
    "topic": ("reset_offsets", "delete_offsets"),
    "all_topics": RESET,
    "dry_run": RESET,
    "execute": RESET,
    "export": RESET,
    **dict.fromkeys(SCENARIOS, RESET),
}
STATES = (
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
)
TYPES = ("Classic", "Consumer")
LEAST_WIDTH = 15


@click.command("groups", context_settings={"help_option_names": ["--help"]})
@cluster_options
@click.option("--list", "list_names", is_flag=True, help="List the groups.")
@click.option("--describe", is_flag=True, help="Show offsets and lag, members or state of groups.")
@click.option("--delete", is_flag=True, help="Delete groups that have no members.")
@click.option("--reset-offsets", is_flag=True, help="Move the offsets of groups that have no members.")
@click.option("--delete-offsets", is_flag=True, help="Forget offsets of topics that no member reads.")
@click.option("--group", multiple=True, metavar="GROUP", help="Which group. May be repeated.")
@click.option("--all-groups", is_flag=True, help="All groups of consumers.")
@click.option("--offsets", is_flag=True, help="Describe offsets and lag; the default.")
@click.option("--members", is_flag=True, help="Describe the members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    metavar="STATES",
    help="Describe the state; with --list show it, or only groups in STATES (stable,empty).",
)
@click.option(
    "--type",
    is_flag=False,
    flag_value="",
    metavar="TYPES",
    help="With --list show the protocol, or only groups of TYPES (classic,consumer).",
)
@click.option("--verbose", is_flag=True, help="Describe epochs and assignments too.")
@click.option(
    "--topic",
    multiple=True,
    metavar="TOPIC[:P1,P2]",
    help="Which partitions, all of a topic by default. May be repeated.",
)
@click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets of.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option("--to-current", is_flag=True, help="To where they are, or behind the last record.")
@click.option("--to-offset", type=click.IntRange(0), metavar="OFFSET", help="To an offset.")
@click.option("--shift-by", type=int, metavar="N", help="By a number of offsets, which may be negative.")
@click.option("--to-datetime", metavar="TIME", help="To a time, YYYY-MM-DDThh:mm:ss.sss, UTC by default.")
@click.option("--by-duration", metavar="DURATION", help="To a time so long ago, PnDTnHnMnS.")
@click.option(
    "--from-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="To the offsets of a CSV file, as --export prints it.",
)
@click.option("--dry-run", is_flag=True, help="Show the new offsets, do not commit them; the default.")
@click.option("--execute", is_flag=True, help="Commit the new offsets.")
@click.option("--export", is_flag=True, help="Print the new offsets as CSV.")
@click.option(
    "--timeout",
    type=click.IntRange(1),
    metavar="MS",
    help="How long to wait for the brokers; else request.timeout.ms, 30000.",
)
def groups(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, describe and delete consumer groups of any broker, and move their offsets.

    Exactly one of --list, --describe, --delete, --reset-offsets and --delete-offsets.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    CHECK[action](options)
    with connected(FAILING, bootstrap_server, command_config, options["timeout"]) as admin:
        fail(ACTION[action](admin, options))


def fail(failures: Sequence[str]) -> None:
    """End with what failed, if anything did.

    Raises:
        CommandFailed: Something did.
    """
    if failures:
        raise CommandFailed(f"{FAILING} {'; '.join(failures)}")


def check_list(options: dict[str, Any]) -> None:
    """States and types are of those that there are; they are written as Kafka does."""
    options["states"] = words(options["state"], STATES, "--state")
    options["types"] = words(options["type"], TYPES, "--type")


def words(text: str | None, known: Sequence[str], option: str) -> list[str]:
    """A list of known words, in any case.

    Raises:
        click.UsageError: One is not known.
    """
    spelled = {word.lower(): word for word in known}
    wanted = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in wanted:
        if word.lower() not in spelled:
            raise click.UsageError(f"option {option}: {word!r} is none of {', '.join(known)}")
    return [spelled[word.lower()] for word in wanted]


def check_describe(options: dict[str, Any]) -> None:
    """Groups, and one thing to see of them."""
    check_groups(options)
    at_most_one(options, ("offsets", "members", "state"))
    if options["state"]:
        raise click.UsageError("option --state takes no value with --describe")


def check_groups(options: dict[str, Any]) -> None:
    """One way to say which groups."""
    if at_most_one(options, ("group", "all_groups")) is None:
        raise click.UsageError("one of --group or --all-groups must be specified")


def check_reset(options: dict[str, Any]) -> None:
    """Groups, one way to say where to, and one to say what."""
    check_groups(options)
    at_most_one(options, ("dry_run", "execute"))
    if at_most_one(options, SCENARIOS) is None:
        raise click.UsageError(f"one of {', '.join(map(flag, SCENARIOS))} must be specified")
    scope = at_most_one(options, ("all_topics", "topic"))
    if options["from_file"] is None and scope is None:
        raise click.UsageError("one of --all-topics or --topic must be specified")
    if options["from_file"] is not None and scope is not None:
        raise click.UsageError(f"option {flag(scope)} can't be used with --from-file")


def check_delete_offsets(options: dict[str, Any]) -> None:
    """One group and some topics."""
    if len(options["group"]) != 1 or not options["topic"]:
        raise click.UsageError("one --group and at least one --topic must be specified with --delete-offsets")


def list_names(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Print the groups, with their types and states where these are asked for."""
    every = admin.list_groups(states=options["states"], types=options["types"])
    found = sorted((group for group in every if group.consumes), key=lambda group: group.group_id)
    if options["state"] is None and options["type"] is None:
        for group in found:
            click.echo(group.group_id)
        return []
    width = max([LEAST_WIDTH, *(len(group.group_id) for group in found)]) + 10
    columns, rows = [("GROUP", width)], [[group.group_id] for group in found]
    for option, heading in (("type", "TYPE"), ("state", "STATE")):
        if options[option] is not None:
            columns.append((heading, 20))
            for row, group in zip(rows, found, strict=True):
                row.append(getattr(group, option))
    for line in table(columns, rows):
        click.echo(line)
    return []


def describe(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Print what the groups look like; why those that are not shown are not."""
    found, failures = consumers(admin.describe_groups(chosen_groups(admin, options)))
    for group in found:
        said = notice(group)
        if said:
            click.echo(said, err=True)
        if options["members"]:
            lines = member_lines(group, options["verbose"])
        elif options["state"] is not None:
            lines = state_lines(group, options["verbose"])
        else:
            lines = offset_lines(admin, group, options["verbose"])
        for line in lines:
            click.echo(line)
    return failures


def delete(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Delete groups; why those that are left are."""
    outcomes = admin.delete_groups(chosen_groups(admin, options))
    failures = [str(outcome) for outcome in outcomes.values() if outcome]
    deleted = ", ".join(f"'{group}'" for group, outcome in outcomes.items() if outcome is None)
    if not failures:
        click.echo(f"Deletion of requested consumer groups ({deleted}) was successful.")
    elif deleted:
        click.echo(f"These consumer groups were deleted successfully: {deleted}")
    return failures


def delete_offsets(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """Forget offsets; print what became of each."""
    (group,) = options["group"]
    outcomes = admin.offset_delete(group, sorted(chosen_partitions(admin, options["topic"])))
    failures = sorted({outcome.code.name for outcome in outcomes.values() if outcome})
    if not failures:
        click.echo(f"Request succeeded for deleting offsets from group {group}.")
    rows = [[*partition, status(outcome)] for partition, outcome in outcomes.items()]
    for line in ["", *table([("TOPIC", LEAST_WIDTH), ("PARTITION", 10), ("STATUS", 15)], rows)]:
        click.echo(line)
    return [f"{group}: {', '.join(failures)}"] if failures else []


def status(outcome: RequestFailed | None) -> str:
    """What became of an offset."""
    return "Successful" if outcome is None else f"Error: {outcome.code.name}"


CHECK = {
    "list_names": check_list,
    "describe": check_describe,
    "delete": check_groups,
    "reset_offsets": check_reset,
    "delete_offsets": check_delete_offsets,
}
ACTION = {
    "list_names": list_names,
    "describe": describe,
    "delete": delete,
    "reset_offsets": reset_offsets,
    "delete_offsets": delete_offsets,
}
"""Each returns what failed."""
