"""The clients of a gateway: the listener that accepts them, and their connections, which own the pairs.

The broker is dialed when the client has sent the head of a request: a health check that connects and closes
costs no upstream connection. Until the dial has succeeded the client is not read further.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from typing import Any, Final, cast

from odradek.bounds.sampled_log import SampledLog
from odradek.gateway.pair import Pair
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.pair_state import Pause
from odradek.gateway.request_heads import starts_well
from odradek.net.acceptor import listening_sockets
from odradek.net.held_bytes import COUNTED_BYTES
from odradek.net.listener import Listener
from odradek.net.pairs.gateway import Pairs
from odradek.net.pairs.routing import Routing
from odradek.net.pairs.socket_end import SocketEnd
from odradek.net.pairs.standstills import LEFT_MS, LINGER_MS
from odradek.net.pairs.upstream_side import UpstreamSide
from odradek.plugin.context import ConnectionContext, about_client

log = logging.getLogger(__name__)

PROMPT: Final = (3, 17, 18, 36)
"""Brokers answer Metadata, SaslHandshake, ApiVersions and SaslAuthenticate at once."""


class GatewayListener(Listener):
    """Accepts clients and gives each a connection to the broker that it has dialed."""

    def __init__(self, *arguments: Any, gateway: Pairs, routing: Routing, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.gateway = gateway
        self.routing = routing
        self.failure_log = SampledLog(log)

    async def listening(self) -> list[socket.socket]:
        """Bind the bootstrap port, and the ports of the nodes if they have some.

        Raises:
            OSError: The bootstrap port is in use, or the address is not this machine's.
            ConfigError: The port of a node cannot be bound.
        """
        reuse_port = self.gateway.settings.reuse_port
        sockets = await listening_sockets(self.address.host, self.address.port, reuse_port)
        try:
            await self.routing.listen(self.address, sockets)
        except BaseException:
            for each in sockets:
                each.close()
            raise
        return sockets

    def make_channel(self) -> Any:
        return ClientSide(self)

    def note_failure(self, failure: PairFailure, about: Mapping[str, Any]) -> None:
        """Log why a pair was closed by the gateway itself; many of them are a few lines."""
        self.refused += 1
        self.failure_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "closing a connection: %s",
            str(failure),
            cause=str(failure.cause),
            **about,
        )

    def close_idle(self, now_ms: int, max_idle_ms: int) -> int:
        """Close clients that have never sent a request, after ``max_idle_ms``, and idle pairs after the
        gateway's own time.
        """
        idle = []
        for channel in self.channels:
            side: ClientSide = cast(Any, channel)
            since_ms = side.idle_since_ms()
            limit_ms = max_idle_ms if side.pair is None else self.gateway.settings.max_idle_ms
            if since_ms is not None and limit_ms is not None and now_ms - since_ms >= limit_ms:
                idle.append(side)
        for side in idle:
            side.end(Cause.IDLE)
        return len(idle)

    async def close(self, timeout_s: float) -> None:
        """Stop accepting. Close idle pairs at once, the others when they are idle or their time is over."""
        self.draining = True
        if self.acceptor is not None:
            self.acceptor.close()
        deadline_s = self.loop.time() + self.gateway.settings.drain_ms / 1000
        while self.channels and self.loop.time() < deadline_s:
            for channel in list(self.channels):
                channel.drain()
            await asyncio.sleep(0.02)
        for channel in list(self.channels):
            cast(ClientSide, cast(Any, channel)).give_up(Cause.DRAINED)
        await super().close(timeout_s)


class ClientSide(SocketEnd):
    """The connection of a pair to its client."""

    __slots__ = (
        "answer", "closing", "context", "dial", "held", "listener", "pair", "read_on_bytes", "reads_to_bytes",
        "since_ms",
    )  # fmt: skip

    context: ConnectionContext

    def __init__(self, listener: GatewayListener) -> None:
        super().__init__(listener.gateway.memory)
        self.listener = listener
        self.closing = False
        self.since_ms = listener.clock.monotonic_ms()
        self.held = bytearray()
        """Bytes that the client has sent before the broker is connected."""
        self.dial: asyncio.Task[None] | None = None
        self.pair: Pair | None = None
        self.reads_to_bytes = 0
        """The client is read until so much waits for a broker that takes nothing; see `read_on`."""
        self.read_on_bytes = 0
        """Bytes that wait since then."""
        self.answer: Any = None
        """Set by the listener to refuse a client without a principal; the connection closes then."""

    @property
    def about(self) -> dict[str, Any]:
        return about_client(self.context, None if self.pair is None else self.pair.state.identity.client_id)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attached(transport)
        assert self.transport is not None
        self.context = self.listener.opened(cast(Any, self), self.transport)

    def data_received(self, data: bytes) -> None:
        if self.closing:
            return
        if self.reads_to_bytes:
            self.took_more(data)
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
                self.hold(Pause.DIALING)
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
        self.release(Pause.DIALING)
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

    def hold(self, reason: int) -> None:
        super().hold(reason)
        self.listener.gateway.standstills.watch(self)

    def release(self, reason: int) -> None:
        if reason & Pause.PEER_IS_SLOW:
            self.reads_to_bytes = self.read_on_bytes = 0
        super().release(reason)

    def read_on(self, most_bytes: int) -> None:
        """Read a client whose broker takes nothing, until so many bytes wait: its end comes after what it has
        sent, and its system keeps it back while nothing is read here.
        """
        if self.pair is not None and self.reasons == Pause.PEER_IS_SLOW:
            read_on_bytes = self.read_on_bytes
            self.release(Pause.PEER_IS_SLOW)
            self.reads_to_bytes, self.read_on_bytes = most_bytes, read_on_bytes

    def took_more(self, data: bytes) -> None:
        """Take bytes while the broker takes nothing."""
        pair, upstream = self.pair, self.other
        assert pair is not None
        assert upstream is not None
        before = upstream.unsent_bytes()
        pair.from_client(data)
        unsent = upstream.unsent_bytes()
        self.read_on_bytes += unsent - before
        if unsent >= self.reads_to_bytes and not self.closing:
            SocketEnd.hold(self, Pause.PEER_IS_SLOW)
        self.counted().count()

    def progress(self, now_ms: int) -> tuple[int, ...] | None:
        """The numbers that change while the pair goes on; None if it needs no watch: the client is read, and
        the broker has answered.
        """
        pair, upstream = self.pair, self.other
        if self.closing:
            return None
        if pair is None or upstream is None:
            return None if self.dial is None else ()
        if self.reasons & Pause.THROTTLED:
            return (now_ms,)  # it goes on by itself, with what the client has sent before it left
        responses = pair.responses
        if not (self.reasons or self.reads_to_bytes) and responses.now_ns:
            return None
        return upstream.unsent_bytes() - self.read_on_bytes, responses.now_ns, responses.rest

    @property
    def awaits_broker(self) -> bool:
        """Whether it is the broker's turn: to take what was sent, or to answer the first request."""
        pair, upstream = self.pair, self.other
        if pair is None or upstream is None or upstream.reasons:
            return False
        outstanding = pair.state.outstanding
        is_silent = not pair.responses.now_ns and outstanding and outstanding[0][1][0] in PROMPT
        return bool(is_silent) or upstream.unsent_bytes() > 0

    @property
    def broker_address(self) -> str:
        """The address that was dialed."""
        upstream = self.other
        found = None if upstream is None or upstream.transport is None else upstream.transport
        name = None if found is None else found.get_extra_info("peername")
        return "unknown" if name is None else f"{name[0]}:{name[1]}"

    def from_upstream(self, data: bytes) -> None:
        if self.pair is not None and not self.closing:
            self.pair.from_upstream(data)

    def is_slow(self) -> None:
        self.listener.gateway.slow_peers += 1

    def upstream_ended(self, was_reset: bool) -> None:
        """The broker has closed: send the client what has arrived, then close."""
        self.listener.gateway.standstills.gone(self.other)
        if self.closing or self.pair is None:
            return
        self.pair.close(Cause.UPSTREAM_RESET if was_reset else Cause.UPSTREAM)
        if was_reset:
            self.abort()
        else:
            self.close()

    def failed(self, failure: PairFailure) -> None:
        """The pair has decided to close."""
        self.listener.note_failure(failure, self.about)
        if self.other is not None:
            self.other.abort()
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closing = True
        self.held = bytearray()
        self.listener.gateway.standstills.gone(self)
        if self.dial is not None:
            self.dial.cancel()
            self.dial = None
        if self.pair is not None:
            self.pair.close(Cause.CLIENT if exc is None else Cause.CLIENT_RESET)
            self.pair = None
        if self.other is not None and self.other.transport is not None:
            self.other.finish()
            self.listener.gateway.standstills.linger(self.other, LEFT_MS)
        self.lost()
        self.listener.closed(cast(Any, self), False)

    def give_up(self, cause: Cause = Cause.MEMORY) -> None:
        """Close both connections without sending the rest."""
        if self.pair is not None:
            self.pair.close(cause)
        if self.other is not None:
            self.other.abort()
        self.abort()

    def close(self) -> None:
        """Close after everything written has been sent."""
        if not self.closing:
            self.closing = True
            self.finish()
            self.listener.gateway.standstills.linger(self, LINGER_MS)

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
