"""A host whose event loop runs round by round, without sockets."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.bounds.sampled_log import SampledLog
from odradek.net.channel import Channel
from odradek.net.held_bytes import Memory
from odradek.net.turns import Turns, TurnSettings
from odradek.plugin.context import ConnectionContext
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from support.memory import memory_of


class Socket(asyncio.Transport):
    """Records whether it is read."""

    protocol: asyncio.BaseProtocol | None = None

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.closed, self.written = True, False, b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def close(self) -> None:
        self.closed = True

    abort = close


@dataclass
class Rounds:
    """A host whose event loop runs round by round. Requests are echoed and take a millisecond."""

    settings: TurnSettings = field(default_factory=TurnSettings)
    request_ms: int = 1
    requests_per_ms: int = 1
    clock: MockClock = field(default_factory=MockClock)
    max_request_bytes: int = 1 << 20
    refused: int = 0
    refused_log: SampledLog = field(default_factory=lambda: SampledLog(logging.getLogger("odradek.test")))
    draining: bool = False
    shared_buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(1 << 20)))
    soon: list[Callable[[], Any]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    memory: Memory = field(init=False)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.memory = memory_of(self.clock)
        self.turns = Turns(self.clock, self.settings, self.soon.append)

    @property
    def dispatcher(self) -> Rounds:
        return self

    def answer(self, frame: bytes | memoryview, offset: int, _connection: object) -> bytes | None:
        request = bytes(frame[offset:]).rstrip(b".")
        self.seen.append(request.decode())
        if len(self.seen) % self.requests_per_ms == 0:
            self.clock.advance(self.request_ms)
        if request == b"bug":
            raise ZeroDivisionError
        return None if request.startswith(b"quiet") else request

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return request_context().connection

    def closed(self, _channel: Channel, _in_order: bool) -> None:
        """Ignore the call."""

    def connect(self) -> tuple[Channel, Socket]:
        channel, transport = Channel(self), Socket()
        channel.connection_made(transport)
        return channel, transport

    def pipelining(self, name: str, requests: int) -> tuple[Channel, Socket]:
        """A new connection that has sent ``requests`` at once."""
        channel, transport = self.connect()
        channel.data_received(framed(*(f"{name}{number}" for number in range(requests))))
        return channel, transport

    def run_once(self) -> list[str]:
        """One round of the loop; return the requests that were answered in it."""
        before = len(self.seen)
        due, self.soon[:] = self.soon[:], []
        for callback in due:
            callback()
        return self.seen[before:]

    def run_until_idle(self) -> None:
        while self.soon:
            self.run_once()


def framed(*requests: str, size: int = 0) -> bytes:
    """Requests, padded to a size with dots."""
    padded = (request.ljust(size, ".").encode() for request in requests)
    return b"".join(struct.pack(">i", len(request)) + request for request in padded)


def busy(rounds: Rounds) -> None:
    """Use up the free time of a pass of the loop."""
    channel, _ = rounds.connect()
    channel.data_received(framed("one"))
    rounds.clock.advance(1)
    rounds.seen.clear()


def single(rounds: Rounds, channel: Channel, request: str) -> list[str]:
    """The requests that are answered at once when one arrives."""
    before = len(rounds.seen)
    channel.data_received(framed(request))
    return rounds.seen[before:]
