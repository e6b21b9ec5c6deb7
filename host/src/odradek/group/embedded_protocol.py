"""What consumers of the classic protocol tell each other, read and written by the broker.

It does so only for groups that move between the two protocols; see `consumer_subscription` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_subscription import VERSION, said
from odradek.group.topic_view import TopicView
from odradek.wire import codec
from odradek.wire.messages import consumer_protocol
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

ASSIGNMENT_VERSION = 0
"""Every consumer can read it; the later ones have no other fields."""


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """What a member says about itself; None if the bytes say nothing."""
    return said(ConsumerProtocolSubscription, metadata)


def assignment_of(data: bytes) -> ConsumerProtocolAssignment | None:
    """What a leader has assigned, nothing if it left the member out; None if the bytes say nothing."""
    return said(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def partition_ids(topics: TopicView, said: Iterable[consumer_protocol.TopicPartition]) -> set[TopicPartition]:
    """Partitions by topic id, as far as they exist."""
    found = set()
    for topic in said:
        topic_id, count = topics.topic_id(topic.topic), topics.partition_count(topic.topic)
        if topic_id is not None:
            found |= {(topic_id, index) for index in topic.partitions if 0 <= index < count}
    return found


def assignment_bytes(topics: TopicView, partitions: Iterable[TopicPartition]) -> bytes:
    """An assignment as a leader would have written it."""
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
