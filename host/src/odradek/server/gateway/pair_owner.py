"""The part of a listener that the connections of its pairs use."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from odradek.clock import Clock
from odradek.gateway.addresses import Addresses
from odradek.gateway.pair_failure import PairFailure
from odradek.plugin.context import ConnectionContext
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.socket_end import SocketEnd


class PairOwner(Protocol):
    """A `GatewayListener`."""

    gateway: Gateway
    loop: asyncio.AbstractEventLoop
    clock: Clock
    max_request_bytes: int

    @property
    def addresses(self) -> Addresses:
        """The addresses that clients of this listener are told."""

    def opened(self, channel: Any, transport: asyncio.Transport) -> ConnectionContext:
        """A client is connected. Returns the description of the connection."""

    def closed(self, channel: Any) -> None:
        """The connection to a client is gone."""

    def node_of(self, port: int) -> int | None:
        """The node of a bound port; None for the bootstrap port."""

    def note_failure(self, failure: PairFailure, context: ConnectionContext) -> None:
        """The gateway itself has closed a pair."""

    def linger(self, end: SocketEnd) -> None:
        """End a connection that is being closed, if its peer does not take the rest."""
