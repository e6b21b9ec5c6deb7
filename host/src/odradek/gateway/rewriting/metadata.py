"""Metadata: the brokers at the start are rewritten, the topics pass."""

from __future__ import annotations

import struct

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import BROKEN, INT32, int32_at
from odradek.gateway.rewriting.nodes import NodeArray
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.errors import WireError
from odradek.wire.varint import skip_tags

WINDOW_BYTES = 4096
"""Read at once: enough for a hundred brokers. The topics that follow are not copied."""
INCOMPLETE = (IndexError, struct.error)


class MetadataRewriter:
    """Holds one Metadata response until its brokers are complete, then passes what comes."""

    __slots__ = (
        "addresses", "array", "error_code", "fed", "has_throttle", "head", "held", "hold_bytes",
        "left", "nodes", "parsed", "size", "throttle_ms",
    )  # fmt: skip

    def __init__(self, size: int, version: int, addresses: Addresses, hold_bytes: int) -> None:
        self.size = size
        self.addresses = addresses
        self.hold_bytes = hold_bytes
        self.array = NodeArray(flexible=version >= 9, has_rack=version >= 1)
        self.has_throttle = version >= 3
        self.error_code: int | None = None
        self.throttle_ms: int | None = None
        self.fed = 0
        self.head = b""
        """The bytes before the brokers."""
        self.nodes: list[bytes] = []
        self.left: int | None = None
        """Brokers that have not been read yet; None before their count."""
        self.parsed = 0
        """Bytes of the head and of the brokers that have been read."""
        self.held = b""
        """Bytes that follow these."""

    @property
    def held_bytes(self) -> int:
        return 0 if self.left == 0 else self.parsed + len(self.held)

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Take the next bytes of the response and return what can be sent now.

        Raises:
            MalformedResponse: The brokers do not parse, or do not fit into the bound.
        """
        self.fed += len(chunk)
        if self.left == 0:
            return [chunk]
        try:
            return self.advance(chunk)
        except BROKEN as error:
            raise MalformedResponse(f"Metadata of {self.size} bytes: {error}") from error

    def advance(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Read brokers as far as the bytes reach."""
        for start in range(0, len(chunk), WINDOW_BYTES):
            before = len(self.held)
            data = self.held + bytes(chunk[start : start + WINDOW_BYTES])
            at = self.brokers(data)
            self.parsed += at
            self.held = b"" if self.left == 0 else data[at:]
            if self.parsed + len(self.held) > self.hold_bytes:
                raise WireError(f"the brokers do not end within {self.hold_bytes} bytes")
            if self.left == 0:
                return [*self.prefix(), chunk[start + at - before :]]
        if self.fed >= self.size:
            raise WireError("it ends before its brokers do")
        return []

    def brokers(self, data: bytes) -> int:
        """Read the head and complete brokers from the start of the data, and return their size."""
        at = 0
        try:
            if self.left is None:
                self.left, at = self.start(data)
            while self.left:
                node, at = self.array.node(data, at, self.addresses)
                self.left -= 1
                if node is not None:
                    self.nodes.append(node)
        except INCOMPLETE:
            pass
        return at

    def start(self, data: bytes) -> tuple[int, int]:
        """Read what precedes the brokers; return their number and the position of the first."""
        at = skip_tags(data, 4) if self.array.flexible else 4
        if self.has_throttle:
            (throttle_ms,) = int32_at(data, at)
            at += 4
        count, first = self.array.count(data, at)
        if self.has_throttle:
            self.throttle_ms = throttle_ms
        self.head = data[:at]
        return count, first

    def prefix(self) -> list[bytes]:
        """Return the new length, and what now stands in front of the cluster id."""
        nodes = self.array.packed(self.nodes)
        size = self.size - self.parsed + len(self.head) + len(nodes)
        self.nodes.clear()
        return [INT32.pack(size), self.head, nodes]
