"""DescribeCluster: the addresses of all brokers, fenced ones included."""

from __future__ import annotations

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import int16_at, int32_at, require_end, text_at
from odradek.gateway.rewriting.nodes import NodeArray
from odradek.gateway.rewriting.whole import Rewrite, Rewritten
from odradek.wire.varint import skip_tags


def describe_cluster(version: int) -> Rewrite:
    """Return the function that rewrites v0 to v2."""
    array = NodeArray(flag_bytes=1 if version >= 2 else 0)

    def rewrite(frame: bytes, addresses: Addresses) -> Rewritten:
        at = skip_tags(frame, 4)
        (throttle_ms,) = int32_at(frame, at)
        (error_code,) = int16_at(frame, at + 4)
        _, at = text_at(frame, at + 6, flexible=True)
        if version >= 1:
            at += 1  # the type of the endpoints
        _, at = text_at(frame, at, flexible=True)
        at += 4  # the controller's id
        nodes, end = array.rewritten(frame, at, addresses)
        require_end(frame, skip_tags(frame, end + 4))
        return Rewritten(frame[:at] + nodes + frame[end:], error_code, throttle_ms)

    return rewrite
