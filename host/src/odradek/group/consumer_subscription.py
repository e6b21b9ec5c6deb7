"""What a member of type ``consumer`` says about itself, and what its leader tells it, as the broker reads it.

Describe tools, OffsetDelete and the expiration of offsets want to know; and `embedded_protocol`, for groups
that move between the two protocols.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"  # ConsumerProtocol.PROTOCOL_TYPE
VERSION = struct.Struct(">h")

Said = TypeVar("Said", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def said(kind: type[Said], data: bytes) -> Said | None:
    """What stands behind the version in front; None if the bytes say nothing.

    Of a newer version than is known the known fields are read: versions only add to the end.
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
    """The topics of a ConsumerProtocolSubscription; None if the bytes are none."""
    subscription = said(ConsumerProtocolSubscription, metadata)
    return None if subscription is None else frozenset(subscription.topics)
