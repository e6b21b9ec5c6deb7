"""The part of a listener that a channel uses."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.dispatch.dispatcher import Answer
from odradek.net.held_bytes import Memory
from odradek.net.turns import Turns
from odradek.plugin.context import ConnectionContext
from odradek.waiting.clock import Clock


class Answers(Protocol):
    """Answers requests: a `Dispatcher`."""

    def answer(self, frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Answer:
        """See `Dispatcher.answer`."""


class ChannelOwner(Protocol):
    """A `Listener`."""

    @property
    def dispatcher(self) -> Answers: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def max_request_bytes(self) -> int: ...
    @property
    def shared_buffer(self) -> memoryview:
        """Receives the rest of large frames; see `LargeFrame`."""

    @property
    def draining(self) -> bool:
        """The host stops: close as soon as no answer is outstanding."""

    refused: int
    """Connections closed because their bytes made no sense; the channel adds to it."""
    refused_log: SampledLog

    def opened(self, channel: Any, transport: asyncio.Transport) -> ConnectionContext:
        """Use a new transport. Returns the description of the connection."""

    def closed(self, channel: Any, in_order: bool) -> None:
        """The connection is gone. ``in_order``: the client has closed it, with nothing unanswered."""
