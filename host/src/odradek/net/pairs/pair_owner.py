"""The part of a listener that the connections of its pairs use."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from odradek.gateway.pair_failure import PairFailure
from odradek.net.pairs.gateway import Gateway
from odradek.net.pairs.routing import Routing
from odradek.plugin.context import ConnectionContext
from odradek.waiting.clock import Clock


class PairOwner(Protocol):
    """A `GatewayListener`."""

    gateway: Gateway
    routing: Routing
    loop: asyncio.AbstractEventLoop
    clock: Clock
    max_request_bytes: int

    def opened(self, channel: Any, transport: asyncio.Transport) -> ConnectionContext:
        """A client is connected. Returns the description of the connection."""

    def closed(self, channel: Any) -> None:
        """The connection to a client is gone."""

    def note_failure(self, failure: PairFailure, context: ConnectionContext) -> None:
        """The gateway itself has closed a pair."""
