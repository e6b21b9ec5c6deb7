"""A channel with a scripted dispatcher and a recording transport."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.dispatch.dispatcher import Answer
from odradek.broker.dispatch.routes import CloseConnection
from odradek.net.channel import Channel
from odradek.net.held_bytes import Memory
from odradek.net.large_frame import LargeFrame
from odradek.net.turns import Turns, TurnSettings
from odradek.plugin.context import ConnectionContext
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.errors import WireError
from support.memory import memory_of

LIMIT = 1_000_000


class RecordingTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.writes = 0
        self.protocol: asyncio.BaseProtocol | None = None
        self.closed = self.reading_paused = False
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self.writes += 1

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False


@dataclass
class EchoDispatcher:
    """Answers ``<x>`` to ``x``; requests that start with ``later`` are deferred; ``bad`` and ``no`` raise."""

    seen: list[bytes] = field(default_factory=list)
    deferred: list[Deferred[Any]] = field(default_factory=list)

    def answer(self, frame: bytes | memoryview, offset: int, _connection: object) -> Answer:
        request = bytes(frame[offset:])
        self.seen.append(request)
        if request.endswith(b"bad"):
            raise WireError("bad bytes")
        if request.endswith(b"no"):
            raise CloseConnection("no answer possible")
        if request.startswith(b"later"):
            self.deferred.append(Deferred())
            return self.deferred[-1]
        return None if request == b"quiet" else b"<" + request + b">"


@dataclass
class ScriptedListener:
    dispatcher: EchoDispatcher = field(default_factory=EchoDispatcher)
    clock: MockClock = field(default_factory=MockClock)
    max_request_bytes: int = LIMIT
    refused: int = 0
    refused_log: SampledLog = field(default_factory=lambda: SampledLog(logging.getLogger("odradek.test")))
    draining: bool = False
    lost: int = 0
    in_order: list[bool] = field(default_factory=list)
    soon: list[Callable[[], Any]] = field(default_factory=list)
    shared_buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(100_000)))
    memory: Memory = field(init=False)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.memory = memory_of(self.clock)
        self.turns = Turns(self.clock, TurnSettings(), self.soon.append)

    def run_turns(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return request_context().connection

    def closed(self, _channel: Channel, in_order: bool) -> None:
        self.lost += 1
        self.in_order.append(in_order)


def written(channel: Channel) -> bytes:
    return cast(RecordingTransport, channel.transport).written


def transport(channel: Channel) -> RecordingTransport:
    return cast(RecordingTransport, channel.transport)


def framed(*requests: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(request)) + request for request in requests)


def receive(channel: Channel, data: bytes) -> None:
    """Deliver bytes as a transport does, into the protocol's buffer if it has one; then run the loop."""
    while data:
        protocol = transport(channel).protocol
        if not isinstance(protocol, LargeFrame):
            channel.data_received(data)
            break
        room = protocol.get_buffer(-1)
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        protocol.buffer_updated(taken)
        data = data[taken:]
    cast(ScriptedListener, channel.owner).run_turns()
