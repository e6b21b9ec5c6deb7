"""``odradek topics``: the options and output of kafka-topics.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr (the tool: stdout). Topics are described in the order of their names. The broker, not the command,
checks the keys of ``--config``.

Like the tool, it does not retry a request that exceeds a quota (KIP-599), so that the user sees the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.cli.topic_report import Report, lines, shown_topic
from odradek.cli.usage import at_most_one, one_action, only_with, topic_pattern
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.resources import ConfigResource, NewPartitions, NewTopic
from odradek.client.topic_descriptions import PARTITIONS_PER_PAGE
from odradek.wire.error_code import ErrorCode
from odradek.wire.uuid_text import parse_uuid

FAILING = "Error while executing topic command :"
ACTIONS = ("list_names", "describe", "create", "alter", "delete")
REPORTS = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
"""Options that restrict the partitions to show."""
GOES_WITH = {
    "config": ("create",),
    "partitions": ("create", "alter"),
    "replication_factor": ("create",),
    "replica_assignment": ("create", "alter"),
    "if_exists": ("alter", "delete", "describe"),
    "if_not_exists": ("create",),
    "exclude_internal": ("list_names", "describe"),
    **dict.fromkeys(
        ("topic_id", "partition_size_limit_per_response", "topics_with_overrides", *REPORTS), ("describe",)
    ),
    "as_json": ("list_names", "describe"),
}
COLLISION = "WARNING: metric names do not distinguish '.' from '_': use only one of them in topic names."


@click.command("topics")
@cluster_options
@click.option("--list", "list_names", is_flag=True, help="List the names of the topics.")
@click.option("--describe", is_flag=True, help="Show topics with their partitions.")
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--alter", is_flag=True, help="Add partitions to topics.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--topic", metavar="NAME", help="The topic; a regular expression except with --create.")
@click.option("--topic-id", metavar="ID", help="Id of the topic to describe.")
@click.option("--partitions", type=click.IntRange(1), metavar="N", help="Total number of partitions.")
@click.option(
    "--replication-factor", type=click.IntRange(1, 32767), metavar="N", help="Replicas per partition."
)
@click.option(
    "--replica-assignment",
    metavar="B1:B2,...",
    help="Brokers of each partition; partitions are separated by commas.",
)
@click.option(
    "--config", multiple=True, metavar="KEY=VALUE", help="Config of the new topic; may be repeated."
)
@click.option("--if-exists", is_flag=True, help="Do not fail if the topic does not exist.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics that override a config.")
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a live leader.")
@click.option(
    "--under-replicated-partitions", is_flag=True, help="Only partitions with out-of-sync replicas."
)
@click.option("--under-min-isr-partitions", is_flag=True, help="Only partitions below min.insync.replicas.")
@click.option("--at-min-isr-partitions", is_flag=True, help="Only partitions at min.insync.replicas.")
@click.option(
    "--partition-size-limit-per-response",
    type=click.IntRange(1),
    metavar="N",
    help="Partitions to request at once.",
)
@json_option
def topics(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, describe, create, alter and delete topics of any broker.

    Give exactly one of --list, --describe, --create, --alter and --delete.
    """
    action = one_action(options, ACTIONS)
    check(action, options)
    with connected(FAILING, bootstrap_server, command_config) as admin:
        ACTION[action](admin, options)


def check(action: str, options: dict[str, Any]) -> None:
    """Apply the rules of the tool.

    Raises:
        click.UsageError: The command line breaks one of them.
    """
    if action == "alter" and options["config"]:
        raise click.UsageError("option --config can't be used with --alter; use odradek configs --alter")
    only_with(options, action, GOES_WITH)
    for report in REPORTS:
        at_most_one(options, ("topics_with_overrides", report))
    if action in ("create", "alter", "delete") and not options["topic"]:
        raise click.UsageError(f"option --topic is missing with --{action}")
    if action == "alter" and options["partitions"] is None:
        raise click.UsageError("option --partitions is missing with --alter")
    if action == "create":
        at_most_one(options, ("replica_assignment", "partitions"))
        at_most_one(options, ("replica_assignment", "replication_factor"))


def list_names(admin: AdminClient, options: dict[str, Any]) -> None:
    """Print the names, or an empty line if there are none, as the tool does."""
    names = found(admin, options)
    show(options["as_json"], ({"topic": name} for name in names), ["\n".join(names)])


def found(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """The names of the selected topics, sorted."""
    wanted = topic_pattern(options["topic"], "--topic") if options["topic"] else None
    return sorted(
        row.name
        for row in admin.metadata().topics
        if row.name
        and (wanted is None or wanted.fullmatch(row.name))
        and not (row.is_internal and options["exclude_internal"])
    )


def existing(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """The selected topics: at least one, unless ``--if-exists`` is given.

    Raises:
        CommandFailed: No topic matches ``--topic``.
    """
    names = found(admin, options)
    if options["topic"] and not names and not options["if_exists"]:
        raise CommandFailed(f"{FAILING} Topic '{options['topic']}' does not exist as expected")
    return names


def describe(admin: AdminClient, options: dict[str, Any]) -> None:
    """Print topics with their partitions."""
    names = existing(admin, options) if options["topic_id"] is None else by_id(admin, options)
    described = admin.describe_topics(
        names, page=options["partition_size_limit_per_response"] or PARTITIONS_PER_PAGE
    )
    resources = [ConfigResource.topic(name) for name in names]
    entries = admin.describe_configs(resources) if resources else {}
    report = Report(
        living={node.id for node in admin.describe_cluster().nodes},
        overridden_only=options["topics_with_overrides"],
        which=frozenset(option for option in REPORTS if options[option]),
    )
    shown = [(topic, entries[resource]) for topic, resource in zip(described, resources, strict=True)]
    show(
        options["as_json"],
        (each for topic, own in shown if (each := shown_topic(topic, own, report))),
        (line for topic, own in shown for line in lines(topic, own, report)),
    )


def by_id(admin: AdminClient, options: dict[str, Any]) -> list[str]:
    """The name of the topic with the id of ``--topic-id``; empty if there is none.

    Raises:
        click.UsageError: The text is not a topic id.
        CommandFailed: No topic has this id, and ``--if-exists`` is not given.
    """
    text = options["topic_id"]
    try:
        wanted = parse_uuid(text)
    except ValueError as error:
        raise click.UsageError(f"option --topic-id: {error}") from None
    names = [row.name for row in admin.metadata().topics if row.name and row.topic_id == wanted]
    if not names and not options["if_exists"]:
        raise CommandFailed(f"{FAILING} TopicId '{text}' does not exist as expected")
    return names


def create(admin: AdminClient, options: dict[str, Any]) -> None:
    """Create one topic."""
    name = options["topic"]
    if "." in name or "_" in name:
        click.echo(COLLISION)
    new = NewTopic(
        name=name,
        partitions=options["partitions"] or -1,
        replication_factor=options["replication_factor"] or -1,
        configs=dict(map(key_and_value, options["config"])),
        assignments=assignments(options["replica_assignment"]),
    )
    try:
        admin.create_topics([new], retry_on_quota_violation=False)
    except RequestFailed as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options["if_not_exists"]:
            return
        raise
    click.echo(f"Created topic {name}.")


def key_and_value(text: str) -> tuple[str, str]:
    """Parse one ``--config``.

    Raises:
        click.UsageError: The text has no ``=``.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise click.UsageError(f"option --config: expected key=value, found {text!r}")
    return key.strip(), value.strip()


def assignments(text: str | None) -> Sequence[Sequence[int]]:
    """Parse the brokers of each partition from ``1:2,2:3``.

    Raises:
        click.UsageError: The text has another form, a partition lists a broker twice, or partitions have
            different numbers of brokers.
    """
    if not text:
        return ()
    try:
        parts = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"option --replica-assignment: expected 1:2,2:3, found {text!r}") from None
    if any(len(set(part)) < len(part) for part in parts):
        raise click.UsageError(f"option --replica-assignment: a partition lists a broker twice in {text!r}")
    if len({len(part) for part in parts}) > 1:
        raise click.UsageError(
            f"option --replica-assignment: expected the same number of brokers per partition, found {text!r}"
        )
    return parts


def alter(admin: AdminClient, options: dict[str, Any]) -> None:
    """Add partitions to topics. The assignment lists the brokers of existing partitions first."""
    brokers = assignments(options["replica_assignment"])
    names = existing(admin, options)
    described = admin.describe_topics(names) if brokers else ()
    present = {topic.name: len(topic.partitions) for topic in described}
    total = options["partitions"]
    admin.create_partitions(
        {name: NewPartitions(total, brokers[present[name] :] if brokers else None) for name in names},
        retry_on_quota_violation=False,
    )


def delete(admin: AdminClient, options: dict[str, Any]) -> None:
    """Delete topics."""
    admin.delete_topics(existing(admin, options), retry_on_quota_violation=False)


ACTION = {"list_names": list_names, "describe": describe, "create": create, "alter": alter, "delete": delete}
