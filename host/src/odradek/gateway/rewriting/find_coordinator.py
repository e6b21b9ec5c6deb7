"""FindCoordinator: the address of one coordinator, or of one for each key.

A coordinator without an advertised address is answered with COORDINATOR_NOT_AVAILABLE: clients ask again, as
they do while the coordinator moves.
"""

from __future__ import annotations

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import (
    INT16,
    INT32,
    count_at,
    int16_at,
    int32_at,
    require_end,
    text,
    text_at,
)
from odradek.gateway.rewriting.nodes import readdressed
from odradek.gateway.rewriting.whole import Rewrite, Rewritten
from odradek.wire.error_code import ErrorCode
from odradek.wire.varint import skip_tags

NO_NODE = -1
UNAVAILABLE = "The coordinator is not available."
"""Kafka's text of COORDINATOR_NOT_AVAILABLE."""


def find_coordinator(version: int) -> Rewrite:
    """Return the function that rewrites a version."""
    if version >= 4:
        return rewrite_keys

    def rewrite(frame: bytes, addresses: Addresses) -> Rewritten:
        return rewrite_one(frame, addresses, version)

    return rewrite


def coordinator_address(
    data: bytes, at: int, flexible: bool, addresses: Addresses
) -> tuple[bytes | None, int]:
    """Read node id, host and port; return them with the advertised address and the position after them.

    None instead of the bytes if the node has no advertised address.
    """
    (node_id,) = int32_at(data, at)
    host_start, host_end = text_at(data, at + 4, flexible)
    (port,) = int32_at(data, host_end)
    if node_id < 0:
        return no_address(flexible, node_id), host_end + 4
    address = readdressed(addresses, node_id, data[host_start:host_end], port)
    if address is None:
        return None, host_end + 4
    return data[at : at + 4] + text(address[0], flexible) + INT32.pack(address[1]), host_end + 4


def no_address(flexible: bool, node_id: int = NO_NODE) -> bytes:
    """Return the fields of a coordinator that is not known."""
    return INT32.pack(node_id) + text("", flexible) + INT32.pack(-1)


def rewrite_one(frame: bytes, addresses: Addresses, version: int) -> Rewritten:
    """Rewrite v0 to v3, which have one coordinator."""
    flexible = version >= 3
    at = skip_tags(frame, 4) if flexible else 4
    throttle_ms = None
    if version >= 1:
        (throttle_ms,) = int32_at(frame, at)
        at += 4
    (error_code,) = int16_at(frame, at)
    _, node_at = text_at(frame, at + 2, flexible) if version >= 1 else (0, at + 2)
    node, end = coordinator_address(frame, node_at, flexible, addresses)
    require_end(frame, skip_tags(frame, end) if flexible else end)
    if node is None:
        message = text(UNAVAILABLE, flexible) if version >= 1 else b""
        failure = INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE) + message
        return Rewritten(frame[:at] + failure + no_address(flexible) + frame[end:], error_code, throttle_ms)
    return Rewritten(frame[:node_at] + node + frame[end:], error_code, throttle_ms)


def rewrite_keys(frame: bytes, addresses: Addresses) -> Rewritten:
    """Rewrite v4 to v6, which have a coordinator for each key."""
    at = skip_tags(frame, 4)
    (throttle_ms,) = int32_at(frame, at)
    count, at = count_at(frame, at + 4, flexible=True)
    pieces = [frame[:at]]
    first_error = 0
    for _ in range(count):
        _, node_at = text_at(frame, at, flexible=True)
        node, error_at = coordinator_address(frame, node_at, True, addresses)
        (error_code,) = int16_at(frame, error_at)
        first_error = first_error or error_code
        _, message_end = text_at(frame, error_at + 2, flexible=True)
        end = skip_tags(frame, message_end)
        if node is None:
            failure = INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE) + text(UNAVAILABLE, flexible=True)
            pieces += (frame[at:node_at], no_address(flexible=True), failure, frame[message_end:end])
        else:
            pieces += (frame[at:node_at], node, frame[error_at:end])
        at = end
    require_end(frame, skip_tags(frame, at))
    pieces.append(frame[at:])
    return Rewritten(b"".join(pieces), first_error, throttle_ms)
