"""What a member of type ``consumer`` says about itself: only Describe tools and OffsetDelete want to know."""

from __future__ import annotations

import struct

from odradek.wire.codec import decode
from odradek.wire.errors import WireError
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"  # ConsumerProtocol.PROTOCOL_TYPE
VERSION = struct.Struct(">h")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a ConsumerProtocolSubscription; None if the bytes are none.

    Of a newer version than is known the known fields are read: versions only add to the end.
    """
    if len(metadata) < VERSION.size:
        return None
    (version,) = VERSION.unpack_from(metadata)
    if version < 0:
        return None
    known = min(version, ConsumerProtocolSubscription.VERSIONS.last)
    try:
        return frozenset(decode(ConsumerProtocolSubscription, known, metadata, VERSION.size).topics)
    except WireError:
        return None
