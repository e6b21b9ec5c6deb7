"""Reads the metadata and assignments that consumers of the classic protocol exchange.

Used to describe groups, by OffsetDelete and by the expiration of offsets; and by `embedded_protocol`, for
groups that migrate between the two protocols.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"  # ConsumerProtocol.PROTOCOL_TYPE
VERSION = struct.Struct(">h")

Embedded = TypeVar("Embedded", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def embedded(kind: type[Embedded], data: bytes) -> Embedded | None:
    """The message after the version prefix; None if the bytes cannot be read.

    From a newer version the known fields are read, because versions only add fields at the end.
    """
    if len(data) < VERSION.size:
        return None
    (version,) = VERSION.unpack_from(data)
    if version < 0:
        return None
    try:
        return decode(kind, min(version, kind.VERSIONS.last), data, VERSION.size)
    except WireError:
        return None


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a ConsumerProtocolSubscription; None if the bytes cannot be read.

    Only what all versions have in common is read: some clients write a version whose other fields they leave
    out. Source: ClassicGroup.computeSubscribedTopics.
    """
    try:
        subscription = decode(ConsumerProtocolSubscription, 0, metadata, VERSION.size)
    except WireError:
        return None
    return frozenset(subscription.topics)
