"""Responses that go through a rewriter of the gateway."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits, Rewriter
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.header import flexible_response_header, read_response_header
from odradek.wire.messages.describe_cluster import DescribeClusterResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.messages.produce import ProduceResponse
from odradek.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.wire.messages.share_fetch import ShareFetchResponse

CORRELATION_ID = 77
USUAL = HoldLimits()
STREAMED = HoldLimits(exact_fetch_bytes=0)
"""Limits with which every Fetch response is streamed."""
REWRITTEN: tuple[tuple[type[Any], int], ...] = tuple(
    (cls, version)
    for cls, first in (
        (ProduceResponse, 10), (FetchResponse, 16), (MetadataResponse, 0), (FindCoordinatorResponse, 0),
        (DescribeClusterResponse, 0), (ShareFetchResponse, 1), (ShareAcknowledgeResponse, 1),
    )
    for version in range(first, cls.VERSIONS.last + 1)
)  # fmt: skip
"""Every response with addresses, in every version."""


@dataclass
class Advertised:
    """Addresses by node id: a host and 9000 and the id; none for odd ids from ``unmapped_from`` on."""

    host: str = "gateway.example.com"
    unmapped_from: int = 2**31
    noted: list[tuple[int, str, int]] = field(default_factory=list)

    def advertised(self, node_id: int) -> tuple[str, int] | None:
        if node_id >= self.unmapped_from and node_id % 2:
            return None
        return self.host, 9000 + node_id % 1000

    def learned(self, node_id: int, host: str, port: int) -> None:
        self.noted.append((node_id, host, port))


def frame_of(message: Any, version: int, tags: bytes = b"\0") -> bytes:
    """A response from its correlation id on."""
    header = CORRELATION_ID.to_bytes(4)
    if flexible_response_header(type(message), version):
        header += tags
    return header + encode(message, version)


def message_of(cls: type[Any], version: int, frame: bytes) -> Any:
    """The response that a client reads."""
    correlation_id, at = read_response_header(frame, 0, flexible_response_header(cls, version))
    assert correlation_id == CORRELATION_ID
    return decode(cls, version, frame, at)


def pieces(frame: bytes, cuts: Iterable[int]) -> list[memoryview]:
    """The frame cut at positions."""
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(frame)), len(frame)]
    return [memoryview(frame)[start:end] for start, end in itertools.pairwise(places)]


def fed(rewriter: Rewriter, chunks: Iterable[memoryview]) -> bytes:
    """The frame that a client gets, without its length, which is checked."""
    out = b""
    for chunk in chunks:
        own = bytearray(chunk)
        out += b"".join(rewriter.feed(memoryview(own)))
        own[:] = bytes(len(own))  # a rewriter that kept a view would show it
    assert int.from_bytes(out[:4]) == len(out) - 4
    return out[4:]


def rewritten(
    message: Any,
    version: int,
    addresses: Advertised,
    limits: HoldLimits = USUAL,
    cuts: Iterable[int] = (),
) -> Any:
    """The response that a client reads instead of ``message``."""
    frame = frame_of(message, version)
    rewriter = rewriter_for(message.API_KEY, version, len(frame), addresses, limits)
    assert rewriter is not None
    return message_of(type(message), version, fed(rewriter, pieces(frame, cuts)))


def expected(message: Any, version: int, addresses: Advertised) -> Any:
    """The message, changed to have advertised addresses."""
    if isinstance(message, FindCoordinatorResponse):
        for found in message.coordinators if version >= 4 else [message]:
            readdress_coordinator(found, addresses, has_text=version >= 1)
        return message
    for name in ("brokers", "node_endpoints"):
        if hasattr(message, name):
            setattr(message, name, readdressed(getattr(message, name), addresses))
    return message


def readdressed(nodes: list[Any], addresses: Advertised) -> list[Any]:
    kept = []
    for node in nodes:
        address = addresses.advertised(node.broker_id if hasattr(node, "broker_id") else node.node_id)
        if address is not None:
            node.host, node.port = address
            kept.append(node)
    return kept


def readdress_coordinator(found: Any, addresses: Advertised, has_text: bool) -> None:
    address = addresses.advertised(found.node_id) if found.node_id >= 0 else ("", -1)
    if address is None:
        found.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        found.error_message = "The coordinator is not available." if has_text else ""
        found.node_id = -1
        address = ("", -1)
    found.host, found.port = address
