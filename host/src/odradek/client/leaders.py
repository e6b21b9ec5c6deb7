"""Requests to the leaders of partitions, one per leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, failure
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataResponse

Partition = tuple[str, int]
"""Topic and index."""
Value = TypeVar("Value")
Topic = TypeVar("Topic")


def partition_text(partition: Partition) -> str:
    """The partition as Kafka prints it: ``topic-0``."""
    return f"{partition[0]}-{partition[1]}"


def each_leader(
    cluster: Cluster,
    partitions: Iterable[Partition],
    ask: Callable[[Connection, list[Partition]], Mapping[Partition, Value | RequestFailed]],
    metadata: MetadataResponse | None = None,
) -> dict[Partition, Value | RequestFailed]:
    """Send a request to each leader and return the result of each partition.

    A partition without a leader gets the error that Metadata reports for it.

    Args:
        cluster: The brokers.
        partitions: The partitions to ask about.
        ask: Sends one request to a leader about its partitions.
        metadata: About their topics, if it is known.
    """
    wanted = list(partitions)
    metadata = metadata or cluster.metadata(sorted({topic for topic, _ in wanted}))
    outcomes: dict[Partition, Value | RequestFailed] = {}
    groups: dict[int, list[Partition]] = defaultdict(list)
    for partition, leader in leaders(metadata, wanted).items():
        if isinstance(leader, RequestFailed):
            outcomes[partition] = leader
        else:
            groups[leader].append(partition)
    for leader, group in groups.items():
        outcomes |= ask(cluster.node(leader, metadata), group)
    return outcomes


def leaders(
    metadata: MetadataResponse, partitions: Iterable[Partition]
) -> dict[Partition, int | RequestFailed]:
    """The leader of each partition, or the reason why it has none."""
    known: dict[Partition, int] = {}
    refused: dict[str, RequestFailed] = {}
    for topic in metadata.topics:
        name = topic.name or ""
        error = failure(topic.error_code, subject=name)
        if error is not None:
            refused[name] = error
        for row in topic.partitions:
            known[name, row.partition_index] = row.leader_id
    return {partition: refused.get(partition[0]) or leader(known, partition) for partition in partitions}


def leader(known: Mapping[Partition, int], partition: Partition) -> int | RequestFailed:
    """The leader of a partition whose topic has no error, or the reason why it has none."""
    found = known.get(partition)
    if found is None:
        return RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, subject=partition_text(partition))
    if found < 0:
        return RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE, subject=partition_text(partition))
    return found


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Partition indexes by topic, in the order given."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        found[topic].append(index)
    return found


def topics_of(
    kind: Callable[..., Topic], partitions: Iterable[Partition], row: Callable[[Partition], object]
) -> list[Topic]:
    """The partitions of a request, by topic.

    Args:
        kind: The message of a topic.
        partitions: The partitions.
        row: Makes the message of a partition.
    """
    return [
        kind(name=topic, partitions=[row((topic, index)) for index in indexes])
        for topic, indexes in by_topic(partitions).items()
    ]


def outcomes_of(
    topics: Iterable[Any], value: Callable[[Any], Value]
) -> dict[Partition, Value | RequestFailed]:
    """The result of each partition of a response: its refusal, or the value of its row."""
    rows = {(topic.name, row.partition_index): row for topic in topics for row in topic.partitions}
    return {at: failure(row.error_code, subject=partition_text(at)) or value(row) for at, row in rows.items()}


def nothing(_row: Any) -> None:
    """The value of a request that succeeds without one."""
