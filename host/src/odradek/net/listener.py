"""One listener and its channels."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.dispatch.dispatcher import Answer, Dispatcher
from odradek.broker.dispatch.routes import CloseConnection
from odradek.net.acceptor import Acceptor, listening_sockets
from odradek.net.channel import Channel
from odradek.net.held_bytes import Memory
from odradek.net.large_frame import SHARED_BUFFER_BYTES
from odradek.net.peer import Peer
from odradek.net.proxy_settings import ProxySettings
from odradek.net.sending import WRITE_HIGH_WATER_BYTES
from odradek.net.turns import Turns
from odradek.net.unauthenticated import Unauthenticated
from odradek.plugin.config import ConfigError
from odradek.plugin.context import ConnectionContext
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.security.principals import BuiltPrincipals, UnknownPrincipal
from odradek.security.sasl_session import AuthenticationCounts
from odradek.waiting.clock import Clock, Timer

if TYPE_CHECKING:
    from odradek.net.handshakes import Handshakes
    from odradek.security.sasl_authentication import SaslAuthentication

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """``NAME://HOST:PORT`` of the configuration."""

    name: str
    host: str
    port: int
    """0 takes any free port."""
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.name}://{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """The host as it is written before a port."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def nearby(self, port: int) -> str:
        """``HOST:PORT`` for clients on this machine; the port that was bound."""
        return f"{self.bracketed or 'localhost'}:{port}"


class Listener:
    """Accepts connections and knows their channels."""

    def __init__(
        self,
        address: ListenerAddress,
        *,
        dispatcher: Dispatcher,
        clock: Clock,
        timer: Timer,
        quotas: ConnectionQuotas,
        turns: Turns,
        memory: Memory,
        node_id: int,
        max_request_bytes: int,
        disconnected: Callable[[str, bool], None],
        handshakes: Handshakes | None = None,
        proxies: ProxySettings | None = None,
        principals: BuiltPrincipals | None = None,
        channel_kind: Callable[[Listener], Channel] = Channel,
    ) -> None:
        self.address = address
        self.dispatcher = dispatcher
        self.clock = clock
        self.timer = timer
        self.quotas = quotas
        self.memory = memory
        """The memory that the connections of all listeners hold."""
        self.turns = turns
        """The ring that all listeners of the host share."""
        self.node_id = node_id
        self.max_request_bytes = max_request_bytes
        self.disconnected = disconnected
        self.handshakes = handshakes
        """TLS of new connections; None for a listener without TLS."""
        self.principals = principals
        """Builds the principals of clients without SASL; None if the host does."""
        self.unauthenticated: Unauthenticated | None = (
            None if handshakes is None else handshakes.unauthenticated
        )
        self.proxies = proxies
        self.channels: set[Channel] = set()
        self.peers: dict[Channel, Peer] = {}
        """The client of each channel, from the time it entered until it is gone."""
        self.connecting: dict[Channel, asyncio.Task[None]] = {}
        """Channels that have no transport yet."""
        self.accepted = 0
        self.refused = 0
        """Connections closed because of bytes that made no sense."""
        self.refused_log = SampledLog(log)
        self.channel_kind = channel_kind
        """Makes the channels of new connections."""
        self.counts = AuthenticationCounts()
        self.authentication: SaslAuthentication | None = None
        """None for a listener without SASL."""
        self.draining = False
        """The host stops: channels close as soon as no answer is outstanding."""
        self.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
        """Receives the rest of large frames; see `LargeFrame`."""
        self.serial = count()
        self.loop: asyncio.AbstractEventLoop
        self.acceptor: Acceptor | None = None
        quotas.add_listener(address.name)

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: The address is in use, not this machine's, or does not name a host.
        """
        self.loop = asyncio.get_running_loop()
        try:
            sockets = await self.listening()
        except (OSError, UnicodeError) as error:
            raise not_listening(self.address, error) from error
        self.acceptor = Acceptor(
            self.address.name,
            sockets,
            self.quotas,
            self.timer,
            self.connect,
            self.proxies,
            self.refuse_proxied,
        )

    async def listening(self) -> list[socket.socket]:
        """Sockets that listen on the address of this listener.

        Raises:
            OSError: The port is in use, or the address is not this machine's.
        """
        return await listening_sockets(self.address.host, self.address.port)

    def make_channel(self) -> Channel:
        """The end of a new connection."""
        return self.channel_kind(self)

    @property
    def bound_port(self) -> int:
        """The port that was bound, also if the configuration says 0."""
        assert self.acceptor is not None
        return int(self.acceptor.sockets[0].getsockname()[1])

    def refuse_proxied(self, address: str, why: str) -> None:
        """A connection without a valid PROXY header was closed."""
        self.refused += 1
        self.refused_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "closed a connection: %s",
            why,
            listener=self.address.name,
            address=address,
        )

    def connect(self, connection: socket.socket, peer: Peer) -> None:
        """Give an accepted connection a channel."""
        channel = self.make_channel()
        self.peers[channel] = peer
        self.connecting[channel] = self.loop.create_task(self.attach(connection, channel, peer))

    async def attach(self, connection: socket.socket, channel: Channel, peer: Peer) -> None:
        """Let the loop make a transport for a channel. The loop sets TCP_NODELAY."""
        try:
            if self.handshakes is None:
                await self.loop.connect_accepted_socket(lambda: channel, connection)
            else:
                await self.handshakes.connect(channel, connection, peer.address)
        except OSError as error:
            if self.handshakes is None:
                log.info(
                    "a connection was lost",
                    extra={"listener": self.address.name, "address": peer.address, "why": str(error)},
                )
            else:
                self.counts.failed += 1
                self.handshakes.refuse(error, peer)
            connection.close()
            self.leave(channel)
        finally:
            del self.connecting[channel]
        self.quotas.displace()

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        """A channel has its transport. Returns the description of the connection."""
        self.accepted += 1
        self.channels.add(channel)
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        local = transport.get_extra_info("sockname") or ("unknown", 0)
        peer = self.peers[channel]
        context = ConnectionContext(
            connection_id=f"{local[0]}:{local[1]}-{peer.address}:{peer.port}-{next(self.serial)}",
            listener_name=self.address.name,
            security_protocol=self.address.security_protocol,
            client_address=peer.address,
            client_port=peer.port,
            node_id=self.node_id,
        )
        if self.handshakes is not None or self.principals is not None:
            self.name_client(channel, transport, context)
        return context

    def name_client(self, channel: Channel, transport: asyncio.Transport, context: ConnectionContext) -> None:
        """Give a connection the principal of its client, or close it."""
        try:
            context.principal = self.principal(transport, context)
        except UnknownPrincipal as error:
            self.counts.failed += 1
            if self.handshakes is not None:
                self.handshakes.refuse(str(error), self.peers[channel], context.connection_id)
            channel.answer = refuse_requests  # requests may arrive before the connection is closed
            self.loop.call_soon(transport.abort)
        else:
            self.counts.succeeded += 1

    def principal(self, transport: asyncio.Transport, context: ConnectionContext) -> str:
        """The principal of a client without SASL: by its certificate, or by a plugin.

        Raises:
            UnknownPrincipal: It has none.
        """
        certificate = None
        if self.handshakes is not None:
            context.principal = self.handshakes.tls.principal(transport) or context.principal
            certificate = transport.get_extra_info("ssl_object").getpeercert(True)
        if self.principals is None:
            return context.principal
        built = self.principals.of_peer(context, certificate)
        if built is None:
            raise UnknownPrincipal("the plugin cannot build the principal")
        return built

    def closed(self, channel: Channel, in_order: bool) -> None:
        """A connection is gone."""
        self.channels.discard(channel)
        self.leave(channel)
        self.disconnected(channel.context.connection_id, in_order)

    def leave(self, channel: Channel) -> None:
        """Give back the place of a connection, once."""
        peer = self.peers.pop(channel, None)
        if peer is not None:
            self.quotas.dec(self.address.name, peer.address)

    def close_idle(self, now_ms: int, max_idle_ms: int) -> int:
        """Close the channels that were idle for ``max_idle_ms``, a few in each pass of the loop. A channel
        that is already being closed is aborted: its client does not read.

        Returns:
            How many are closed.
        """
        idle = [
            channel
            for channel in self.channels
            if (since_ms := channel.idle_since_ms()) is not None and now_ms - since_ms >= max_idle_ms
        ]
        for channel in idle:
            self.turns.departures.add(channel.abort if channel.closing else channel.close)
        return len(idle)

    async def close(self, timeout_s: float) -> None:
        """Stop accepting, write the pending answers within ``timeout_s`` and close every channel."""
        self.draining = True
        if self.acceptor is not None:
            self.acceptor.close()
        if self.handshakes is not None:
            self.handshakes.abort()
        await asyncio.gather(*self.connecting.values(), return_exceptions=True)
        for channel in list(self.channels):
            channel.drain()
        deadline_s = self.loop.time() + timeout_s
        while self.channels and self.loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        for channel in list(self.channels):
            channel.abort()
        self.turns.departures.end(len(self.turns.departures))
        await asyncio.sleep(0)  # aborted channels close in the next turn
        self.quotas.remove_listener(self.address.name)


def refuse_requests(frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Answer:
    """The answer to all requests of a client that is refused.

    Raises:
        CloseConnection: Always.
    """
    raise CloseConnection("the client has no principal")


def not_listening(address: ListenerAddress, error: OSError | UnicodeError) -> ConfigError:
    """The error of an address that cannot be bound."""
    if isinstance(error, UnicodeError):
        return ConfigError("listeners", f"{address} does not name a host")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ConfigError("listeners", f"cannot listen on {address}: {reason.lower()}")
