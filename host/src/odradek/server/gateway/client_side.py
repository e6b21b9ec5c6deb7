"""The connection of a pair to its client. It owns the pair.

The broker is dialed when the client has sent the head of a request: a health check that connects and closes
costs no upstream connection. Until the dial has succeeded the client is not read further.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from odradek.gateway.pair import Pair
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.request_heads import starts_well
from odradek.plugin.context import ConnectionContext
from odradek.server.gateway.pair_owner import PairOwner
from odradek.server.gateway.socket_end import SocketEnd
from odradek.server.gateway.upstream_side import UpstreamSide
from odradek.server.sockets.held_bytes import COUNTED_BYTES

log = logging.getLogger(__name__)

DIALING: Final = 8
"""Reason to stop reading: the broker is being dialed."""
LINGER_S: Final = 30.0
"""Time for the rest of what was written to reach its end after the other one has closed."""


class ClientSide(SocketEnd):
    """The connection of a pair to its client."""

    __slots__ = ("answer", "closing", "context", "dial", "held", "listener", "pair", "since_ms")

    context: ConnectionContext

    def __init__(self, listener: PairOwner) -> None:
        super().__init__(listener.gateway.memory)
        self.listener = listener
        self.closing = False
        self.since_ms = listener.clock.monotonic_ms()
        self.held = bytearray()
        """Bytes that the client has sent before the broker is connected."""
        self.dial: asyncio.Task[None] | None = None
        self.pair: Pair | None = None
        self.answer: Any = None
        """Set by the listener to refuse a client without a principal; the connection closes then."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attached(transport)
        assert self.transport is not None
        self.context = self.listener.opened(self, self.transport)

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        if self.pair is not None:
            self.pair.from_client(data)
            return
        self.held += data
        if len(self.held) > COUNTED_BYTES:
            self.holds(len(self.held), 0)
        if self.dial is not None or self.answer is not None:
            return
        try:
            if starts_well(self.held, self.listener.max_request_bytes):
                self.hold(DIALING)
                self.dial = self.listener.loop.create_task(self.connect_upstream())
        except PairFailure as failure:
            self.listener.gateway.path.meter.closed[failure.cause] += 1
            self.failed(failure)

    async def connect_upstream(self) -> None:
        """Dial the broker, then pass on what the client has sent meanwhile."""
        assert self.transport is not None
        node_id = self.listener.routing.node_of(self.transport)
        upstream = UpstreamSide(self.pool)
        upstream.other, self.other = self, upstream
        failure = await self.listener.gateway.dialer.dial(node_id, upstream)
        if failure is not None or self.closing:
            upstream.abort()
            if failure is not None and not self.closing:
                self.listener.gateway.path.meter.closed[failure.cause] += 1
                self.failed(failure)
            return
        owner = self.listener
        identity = self.identity(node_id)
        self.pair = Pair(owner.gateway.path, owner.routing.addresses, identity, self, upstream, self.failed)
        held, self.held = bytes(self.held), bytearray()
        self.holds(0, 0)
        self.pair.from_client(held)
        self.release(DIALING)
        if upstream.transport is None:  # it has ended before there was a pair
            self.upstream_ended(False)

    def identity(self, node_id: int | None) -> PairIdentity:
        """The client, as far as its connection tells."""
        context = self.context
        identity = PairIdentity(context.client_address, context.client_port, context.listener_name, node_id)
        identity.security_protocol = context.security_protocol
        if context.principal != identity.principal:
            identity.principal, identity.principal_source = context.principal, "tls"
        return identity

    def from_upstream(self, data: bytes) -> None:
        if self.pair is not None and not self.closing:
            self.pair.from_upstream(data)

    def is_slow(self) -> None:
        self.listener.gateway.slow_peers += 1

    def upstream_ended(self, was_reset: bool) -> None:
        """The broker has closed: send the client what has arrived, then close."""
        if self.closing or self.pair is None:
            return
        self.pair.close(Cause.UPSTREAM_RESET if was_reset else Cause.UPSTREAM)
        if was_reset:
            self.abort()
        else:
            self.close()

    def failed(self, failure: PairFailure) -> None:
        """The pair has decided to close."""
        self.listener.note_failure(failure, self.context)
        if self.other is not None:
            self.other.abort()
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self.held = bytearray()
        if self.dial is not None:
            self.dial.cancel()
            self.dial = None
        if self.pair is not None:
            self.pair.close(Cause.CLIENT)
            self.pair = None
        if self.other is not None and self.other.transport is not None:
            self.other.finish()
            self.listener.linger(self.other)
        self.lost()
        self.listener.closed(self)

    def give_up(self, cause: Cause = Cause.MEMORY) -> None:
        """Close both connections without sending the rest."""
        if self.pair is not None:
            self.pair.close(cause)
        if self.other is not None:
            self.other.abort()
        self.abort()

    def close(self) -> None:
        """Close after everything written has been sent, within `LINGER_S`."""
        if not self.closing:
            self.closing = True
            self.finish()
            self.listener.linger(self)

    def drain(self) -> None:
        """The gateway stops: close if nothing is outstanding."""
        if self.pair is None or self.pair.is_idle:
            self.end(Cause.DRAINED)

    def end(self, cause: Cause) -> None:
        """Close a connection on which nothing is outstanding."""
        if self.pair is not None:
            self.pair.close(cause)
        elif not self.closing:
            self.listener.gateway.path.meter.closed[cause] += 1
        self.close()

    @property
    def last_active_ms(self) -> int:
        """When the last frame began or ended; before the first one, when the client connected."""
        return self.since_ms if self.pair is None else self.pair.last_active_ns // 1_000_000

    def idle_since_ms(self) -> int | None:
        """When the connection was used last; None while it is in use, or closes."""
        is_used = self.dial is not None if self.pair is None else not self.pair.is_idle
        return None if is_used or self.closing else self.last_active_ms
