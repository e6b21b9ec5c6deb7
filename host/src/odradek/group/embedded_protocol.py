"""The metadata and assignments of the classic protocol, read and written by the broker.

Only for groups that migrate between the two protocols; `consumer_subscription` serves the other uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_subscription import VERSION, embedded
from odradek.group.topic_view import TopicView
from odradek.wire import codec
from odradek.wire.messages import consumer_protocol
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

ASSIGNMENT_VERSION = 0
"""Every consumer can read version 0, and later versions have no more fields."""


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """The subscription of a member; None if the bytes cannot be read."""
    return embedded(ConsumerProtocolSubscription, metadata)


def assignment_of(data: bytes) -> ConsumerProtocolAssignment | None:
    """The assignment from a leader, empty if it left the member out; None if the bytes cannot be read."""
    return embedded(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def partition_ids(
    topics: TopicView, named: Iterable[consumer_protocol.TopicPartition]
) -> set[TopicPartition]:
    """The existing ones of these partitions, by topic id."""
    found = set()
    for topic in named:
        topic_id, count = topics.topic_id(topic.topic), topics.partition_count(topic.topic)
        if topic_id is not None:
            found |= {(topic_id, index) for index in topic.partitions if 0 <= index < count}
    return found


def assignment_bytes(topics: TopicView, partitions: Iterable[TopicPartition]) -> bytes:
    """An assignment in the format of a leader."""
    by_name: dict[str, list[int]] = {}
    for topic_id, index in sorted(partitions):
        name = topics.topic_name(topic_id)
        if name is not None:
            by_name.setdefault(name, []).append(index)
    assigned = [
        consumer_protocol.TopicPartition(topic=name, partitions=indexes) for name, indexes in by_name.items()
    ]
    assignment = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return VERSION.pack(ASSIGNMENT_VERSION) + codec.encode(assignment, ASSIGNMENT_VERSION)
