"""The groups and partitions that a command line of ``odradek groups`` selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.group_descriptions import SHARE, STREAMS, GroupDescription
from odradek.client.groups import CONSUMER_PROTOCOL_TYPES
from odradek.client.leaders import Partition, partition_text
from odradek.wire.error_code import ErrorCode


def chosen_groups(admin: AdminClient, options: Mapping[str, Any]) -> list[str]:
    """The groups of ``--group`` or ``--all-groups``, sorted and without duplicates."""
    if options["all_groups"]:
        return sorted(group.group_id for group in admin.list_groups() if group.consumes)
    return sorted(set(options["group"]))


def consumers(
    outcomes: Mapping[str, GroupDescription | RequestFailed],
) -> tuple[list[GroupDescription], list[str]]:
    """Separate the groups that can be shown from the failures, which include groups of other types."""
    found, failures = [], []
    for group_id, outcome in outcomes.items():
        if isinstance(outcome, RequestFailed):
            failures.append(str(outcome))
        elif outcome.protocol_type not in (*CONSUMER_PROTOCOL_TYPES, SHARE, STREAMS):
            failures.append(f"{group_id}: not a consumer group, its protocol type is {outcome.protocol_type}")
        else:
            found.append(outcome)
    return found, failures


def chosen_partitions(admin: AdminClient, topics: Sequence[str]) -> list[Partition]:
    """The partitions that the ``--topic`` options select.

    Raises:
        click.UsageError: An option has the wrong form.
        RequestFailed: A topic given without partitions does not exist.
    """
    whole = [text for text in topics if ":" not in text]
    named = [partition for text in topics if ":" in text for partition in named_partitions(text)]
    described = admin.describe_topics(sorted(set(whole)))
    every = [(topic.name, row.index) for topic in described for row in topic.partitions]
    return [*dict.fromkeys(named + every)]


def named_partitions(text: str) -> list[Partition]:
    """Parse the partitions of ``topic:0,1``.

    Raises:
        click.UsageError: The text has another form.
    """
    topic, _, indexes = text.partition(":")
    numbers = [number.strip() for number in indexes.split(",")]
    if not topic or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.UsageError(f"option --topic: expected topic or topic:0,1, found {text!r}")
    return [(topic, int(number)) for number in numbers]


def check_existing(admin: AdminClient, partitions: Iterable[Partition]) -> None:
    """Check that all partitions exist.

    Raises:
        RequestFailed: A partition does not exist.
    """
    wanted = list(partitions)
    described = admin.describe_topics(sorted({topic for topic, _ in wanted}))
    known = {(topic.name, row.index) for topic in described for row in topic.partitions}
    for partition in wanted:
        if partition not in known:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject=partition_text(partition))
