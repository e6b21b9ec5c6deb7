"""Deliver pushes again: move the offsets of a forwarder back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.fetch import Reader
from odradek.client.group_offsets import CommittedOffset
from odradek.client.leaders import Partition, partition_text
from odradek.client.resources import EARLIEST, LATEST
from odradek_console.cluster_rows import DeadLetterRow

SUFFIX: Final = "_dead_letter"
MOST_LETTERS: Final = 1_000
POLLS: Final = 50
"""Requests for letters of one page at most: a slow cluster does not hold it for longer."""
WAIT_MS: Final = 100


def dead_letters(admin: AdminClient, topic: str, most: int = MOST_LETTERS) -> list[DeadLetterRow]:
    """The latest dead letters of a telemetry topic, the newest first; none if it has no topic for them.

    Args:
        admin: The client.
        topic: The telemetry topic.
        most: The latest letters of each partition.
    """
    name = topic + SUFFIX
    try:
        (described,) = admin.describe_topics([name])
    except RequestFailed as error:
        if error.code.name == "UNKNOWN_TOPIC_OR_PARTITION":
            return []
        raise
    partitions = [(name, each.index) for each in described.partitions]
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    firsts = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    begins = {each: max(firsts[each].offset, ends[each].offset - most) for each in partitions}
    left = {each: ends[each].offset for each in partitions if begins[each] < ends[each].offset}
    reader = Reader(admin.cluster, {each: begins[each] for each in left})
    found: list[DeadLetterRow] = []
    for _ in range(POLLS):
        if all(reader.positions[each] >= end for each, end in left.items()):
            break
        found += letters(reader)
    return sorted(found, key=lambda each: (-each.time_ms, -each.offset))[:most]


def letters(reader: Reader) -> Iterator[DeadLetterRow]:
    """The dead letters in the responses of one request to each leader."""
    for partition, _, record in reader.poll(WAIT_MS):
        named = {name: (value or b"").decode("utf-8", "replace") for name, value in record.headers}
        yield DeadLetterRow(
            partition=partition[1],
            offset=record.offset,
            time_ms=record.timestamp_ms,
            client_id=named.get("client_id", ""),
            client_instance_id=(record.key or b"").decode("utf-8", "replace"),
            forwarder=named.get("dead_letter_forwarder", ""),
            reason=named.get("dead_letter_reason", ""),
            origin_partition=number(named.get("dead_letter_partition")),
            origin_offset=number(named.get("dead_letter_offset")),
            payload_bytes=len(record.value or b""),
        )


def number(text: str | None) -> int:
    """A whole number; -1 if there is none."""
    return int(text) if text and text.isascii() and text.isdigit() else -1


def deliver_since(admin: AdminClient, group: str, since_ms: int) -> dict[Partition, int]:
    """Make a forwarder deliver all pushes since a time again, and return its new offsets.

    Args:
        admin: The client.
        group: The forwarder's group.
        since_ms: Epoch milliseconds.

    Raises:
        ClientError: The cluster refuses. The offsets of `odradek forward` move only while it is stopped.
    """
    partitions = list(admin.offset_fetch(group))
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    found = admin.list_offsets(dict.fromkeys(partitions, since_ms))
    offsets = {
        each: found[each].offset if found[each].offset >= 0 else ends[each].offset for each in partitions
    }
    admin.offset_commit(group, {each: CommittedOffset(offset) for each, offset in offsets.items()})
    return offsets


def deliver_from(admin: AdminClient, group: str, partition: Partition, offset: int) -> None:
    """Make a forwarder deliver the pushes of one partition again, from an offset on.

    Raises:
        ClientError: As `deliver_since`; or the offset is no longer, or not yet, in the log.
    """
    first = admin.list_offsets({partition: EARLIEST})[partition].offset
    committed = admin.offset_fetch(group, [partition])
    if partition not in committed:
        raise ClientError(f"group {group} has no offset for {partition_text(partition)}")
    if not first <= offset <= committed[partition].offset:
        raise ClientError(
            f"{partition_text(partition)}: offset {offset} cannot be delivered again; "
            f"the log begins at {first}, and {group} is at {committed[partition].offset}"
        )
    admin.offset_commit(group, {partition: CommittedOffset(offset)})
