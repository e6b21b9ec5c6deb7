"""What consumers of the classic protocol tell each other, read and written by the broker.

It does so only for groups that move between the two protocols; see `consumer_subscription` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.group.committed_offset import TopicPartition
from odradek.group.consumer_subscription import VERSION
from odradek.group.topic_view import TopicView
from odradek.wire import codec
from odradek.wire.errors import WireError
from odradek.wire.messages import consumer_protocol
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

ASSIGNMENT_VERSION = 0
"""Every consumer can read it; the later ones have no other fields."""


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """What a member says about itself; None if the bytes say nothing.

    Of a newer version than is known the known fields are read: versions only add to the end.
    """
    version = version_of(metadata)
    if version is None:
        return None
    known = min(version, ConsumerProtocolSubscription.VERSIONS.last)
    try:
        return codec.decode(ConsumerProtocolSubscription, known, metadata, VERSION.size)
    except WireError:
        return None


def assignment_of(data: bytes) -> ConsumerProtocolAssignment | None:
    """What a leader has assigned, nothing if it left the member out; None if the bytes say nothing."""
    if not data:
        return ConsumerProtocolAssignment()
    version = version_of(data)
    if version is None:
        return None
    known = min(version, ConsumerProtocolAssignment.VERSIONS.last)
    try:
        return codec.decode(ConsumerProtocolAssignment, known, data, VERSION.size)
    except WireError:
        return None


def version_of(data: bytes) -> int | None:
    """The version that stands in front."""
    if len(data) < VERSION.size:
        return None
    (version,) = VERSION.unpack_from(data)
    return version if version >= 0 else None


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
