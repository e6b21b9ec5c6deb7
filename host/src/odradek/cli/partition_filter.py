"""The partitions that ``odradek get-offsets`` selects, in the notation of kafka-get-offsets.sh."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from odradek.cli.usage import topic_pattern
from odradek.client.leaders import Partition

RULE = re.compile(r"(?P<topic>[^:,]*)(?::(?:(?P<one>[0-9]*)|(?P<first>[0-9]*)-(?P<end>[0-9]*)))?")
"""The format that the tool documents; a range does not contain its end."""
ANY_NAME = ".*"


@dataclass(frozen=True, slots=True)
class Rule:
    """Some partitions of some topics."""

    topic: re.Pattern[str]
    indexes: Callable[[int], bool]

    def matches(self, partition: Partition) -> bool:
        return self.topic.fullmatch(partition[0]) is not None and self.indexes(partition[1])


def topic_partition_rules(text: str) -> list[Rule]:
    """Parse ``--topic-partitions``: ``orders:0,payments:1-3,logs.*,:5-``.

    Raises:
        click.UsageError: A part of the text has another form.
    """
    return [topic_partition_rule(part) for part in text.split(",")]


def topic_partition_rule(text: str) -> Rule:
    """Parse one part."""
    found = RULE.fullmatch(text)
    if found is None:
        raise click.UsageError(f"option --topic-partitions: invalid rule specification: {text}")
    return Rule(
        topic_pattern(found["topic"] or ANY_NAME, "--topic-partitions"),
        indexes(found["one"], found["first"], found["end"]),
    )


def topic_rules(topic: str | None, partitions: str | None) -> list[Rule]:
    """Parse ``--topic`` and ``--partitions``; without either, every partition of every topic.

    Raises:
        click.UsageError: One of them has another form.
    """
    pattern = topic_pattern(topic or ANY_NAME, "--topic")
    wanted = partition_ids(partitions)
    return [Rule(pattern, lambda index: not wanted or index in wanted)]


def partition_ids(text: str | None) -> Sequence[int]:
    """Parse ``--partitions``; empty for all."""
    parts = [part.strip() for part in (text or "").split(",")] if text else []
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise click.UsageError(
            f"option --partitions: expected a comma-separated list of partition ids, found {text!r}"
        )
    return [int(part) for part in parts]


def indexes(one: str | None, first: str | None, end: str | None) -> Callable[[int], bool]:
    """The condition on a partition's index."""
    if one:
        wanted = int(one)
        return lambda index: index == wanted
    least, limit = int(first or 0), int(end) if end else None
    return lambda index: index >= least and (limit is None or index < limit)
