"""The parts of a listener that a channel needs, in front of a whole broker in memory."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.net.channel import Channel
from odradek.net.turns import Turns, TurnSettings
from odradek.plugin.context import ConnectionContext
from odradek.testing.clock import MockClock
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from support.broker import make_broker, make_connection
from support.memory import memory_of


def at_once(callback: Callable[[], Any]) -> None:
    """Take the next turn without a loop."""
    callback()


@dataclass
class BrokerListener:
    """Serves channels; a test connects them to transports."""

    broker: Broker = field(default_factory=make_broker)
    call_soon: Callable[[Callable[[], Any]], object] = at_once
    max_request_bytes: int = 10_000_000
    draining: bool = False
    refused: int = 0
    refused_log: SampledLog = field(default_factory=lambda: SampledLog(logging.getLogger("odradek.test")))
    shared_buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(100_000)))

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.broker, Routes())
        self.memory = memory_of(self.clock)
        self.turns = Turns(self.clock, TurnSettings(), self.call_soon)

    @property
    def clock(self) -> MockClock:
        assert isinstance(self.broker.clock, MockClock)
        return self.broker.clock

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return make_connection()

    def closed(self, _channel: Channel, _in_order: bool) -> None:
        return


def framed(request: Any, version: int) -> bytes:
    """A request as a client sends it."""
    header = RequestHeader(request.API_KEY, version, 1, "client")
    body = request_header(header, flexible_request_header(request, version)) + encode(request, version)
    return struct.pack(">i", len(body)) + body
