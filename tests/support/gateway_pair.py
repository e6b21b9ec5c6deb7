"""A pair between two ends that only remember, and frames to send through it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from odradek.gateway.addresses import NodeRanges, NodeTable, PortPerNode, UnmappedNodes
from odradek.gateway.data_path import DataPath, PathLimits
from odradek.gateway.pair import Pair
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.path_meter import PathMeter
from odradek.gateway.rewriting.api_versions import ApiPolicy
from odradek.wire.codec import encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    request_header,
)

FETCH, LIST_OFFSETS, HEARTBEAT = 1, 2, 12


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def bare(key: int, version: int, correlation_id: int, body: bytes = b"", client_id: str = "app") -> bytes:
    """A request with header 1."""
    name = client_id.encode()
    return framed(struct.pack(">hhih", key, version, correlation_id, len(name)) + name + body)


def answer(correlation_id: int, body: bytes = b"") -> bytes:
    """A response with header 0."""
    return framed(struct.pack(">i", correlation_id) + body)


def request(message: Any, version: int, correlation_id: int, client_id: str = "app") -> bytes:
    header = RequestHeader(message.API_KEY, version, correlation_id, client_id)
    return framed(
        request_header(header, flexible_request_header(message, version)) + encode(message, version)
    )


def response(message: Any, version: int, correlation_id: int) -> bytes:
    tags = b"\0" if flexible_response_header(message, version) else b""
    return framed(struct.pack(">i", correlation_id) + tags + encode(message, version))


@dataclass
class FakeEnd:
    """One connection of a pair."""

    data: bytearray = field(default_factory=bytearray)
    held: set[int] = field(default_factory=set)
    held_bytes: tuple[int, int] = (0, 0)
    """Held bytes of an incomplete frame, and how many are missing."""
    writes: int = 0

    def write(self, data: bytes | memoryview) -> None:
        self.data += data
        self.writes += 1

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        self.write(b"".join(parts))

    def hold(self, reason: int) -> None:
        self.held.add(reason)

    def release(self, reason: int) -> None:
        self.held.discard(reason)

    def holds(self, held_bytes: int, missing_bytes: int) -> None:
        self.held_bytes = held_bytes, missing_bytes


@dataclass
class FakeAnswers:
    """Answers when the test says so."""

    asked: list[tuple[bytes, Callable[[bytes], None]]] = field(default_factory=list)
    at_once: bool = False
    gone: int = 0
    in_order: bool | None = None

    def answer(self, frame: bytes, peer: PairIdentity, done: Callable[[bytes], None]) -> None:
        if self.at_once:
            done(frame[4:8] + b"local")
        else:
            self.asked.append((frame, done))

    def finish(self, index: int = 0) -> None:
        frame, done = self.asked.pop(index)
        done(frame[4:8] + b"local")

    def closed(self, peer: PairIdentity, in_order: bool) -> None:
        self.gone += 1
        self.in_order = in_order


class Through:
    """A pair, its ends, and what has become of it."""

    def __init__(self, at_once: bool = False, node_id: int | None = None, **path: Any) -> None:
        self.client, self.upstream = FakeEnd(), FakeEnd()
        self.answers = FakeAnswers(at_once=at_once)
        self.table = NodeTable()
        nodes = NodeRanges.of([(0, 2)])
        addresses = PortPerNode(nodes, self.table, UnmappedNodes(), "gate", range(19000, 19003))
        values: dict[str, Any] = {
            "monotonic_ns": count(1_000, 1_000).__next__,
            "limits": PathLimits(),
            "meter": PathMeter(),
            "policy": ApiPolicy(),
            "answers": self.answers,
        }
        self.path = DataPath(**(values | path))
        self.identity = PairIdentity("10.0.0.7", 40_000, "PLAINTEXT", node_id=node_id)
        self.failures: list[PairFailure] = []
        self.pair = Pair(
            self.path, addresses, self.identity, self.client, self.upstream, self.failures.append
        )

    def send(self, *frames: bytes) -> None:
        self.pair.from_client(b"".join(frames))

    def reply(self, *frames: bytes) -> None:
        self.pair.from_upstream(b"".join(frames))

    @property
    def sent(self) -> bytes:
        """All bytes that were sent to the broker."""
        return bytes(self.upstream.data)

    @property
    def received(self) -> bytes:
        """All bytes that were sent to the client."""
        return bytes(self.client.data)

    @property
    def cause(self) -> str | None:
        """Why the pair has closed; None if it has not."""
        return self.failures[0].cause if self.failures else None
