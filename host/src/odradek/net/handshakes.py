"""TLS handshakes of new connections: bounded in number, time and work per round of the event loop.

A handshake costs the host half a millisecond of CPU as soon as the first bytes of the client arrive. When
thousands of clients reconnect, all of them may arrive in one round of the loop, so only a few handshakes are
begun in each. Until then a connection is a socket without buffers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from odradek.bounds.sampled_log import SampledLog
from odradek.net.listener_tls import ListenerTls
from odradek.net.peer import Peer
from odradek.net.tls_transport import TlsTransport
from odradek.net.unauthenticated import Unauthenticated
from odradek.security.refused_login import RefusedLogin
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

TLS: Final = "SSL"
"""How the audit log names a login by certificate: like the security protocol."""
BEGUN_AT_ONCE: Final = 4
"""Handshakes that are begun in one round of the loop: about two milliseconds with RSA keys."""


class Handshake:
    """A connection without a channel yet; see `Stranger`."""

    __slots__ = ("about", "connection", "pending", "ready")

    def __init__(self, connection: socket.socket, address: str, ready: asyncio.Future[None]) -> None:
        self.connection = connection
        self.about = {"address": address}
        self.ready = ready
        """Done when the handshake may begin."""
        self.pending: object | None = None

    def abort(self) -> None:
        """Shut the socket down: every wait for it ends."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class HandshakePace:
    """Begins the handshakes of all listeners of a host, in the order in which their clients spoke."""

    def __init__(self) -> None:
        self.waiting: deque[Handshake] = deque()

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, handshake: Handshake, loop: asyncio.AbstractEventLoop) -> None:
        """The first bytes of a client have arrived."""
        loop.remove_reader(handshake.connection)
        self.waiting.append(handshake)
        if len(self.waiting) == 1:
            loop.call_soon(self.begin_some, loop)

    def begin_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a few handshakes; go on in the next round."""
        for _ in range(min(BEGUN_AT_ONCE, len(self.waiting))):
            ready = self.waiting.popleft().ready
            if not ready.done():
                ready.set_result(None)
        if self.waiting:
            loop.call_soon(self.begin_some, loop)


class Handshakes:
    """The handshakes of one listener.

    Args:
        tls: The listener's certificates.
        unauthenticated: Bounds the number and the time of connections that have not authenticated.
        pace: Shared by all listeners.
        clock: The time.
        report: Called with each client that could not be authenticated.
    """

    def __init__(
        self,
        tls: ListenerTls,
        unauthenticated: Unauthenticated,
        pace: HandshakePace,
        clock: Clock,
        report: Callable[[RefusedLogin], None] = lambda _: None,
    ) -> None:
        self.tls = tls
        self.unauthenticated = unauthenticated
        self.pace = pace
        self.clock = clock
        self.report = report
        self.failed_log = SampledLog(log)
        self.open: set[Handshake] = set()

    async def connect(self, channel: asyncio.Protocol, connection: socket.socket, address: str) -> None:
        """Let the loop make a TLS transport for a channel.

        Raises:
            OSError: The handshake failed, or took too long.
        """
        loop = asyncio.get_running_loop()
        handshake = Handshake(connection, address, loop.create_future())
        self.open.add(handshake)
        self.unauthenticated.add(handshake)
        loop.add_reader(connection, self.pace.add, handshake, loop)
        transport: Any = None
        try:
            await handshake.ready
            transport = TlsTransport(self.tls.loaded.context, channel, loop)
            await loop.connect_accepted_socket(lambda: transport, connection)
            await transport.handshaken
        finally:
            transport = None  # it holds the error of its handshake, whose traceback holds this frame
            if handshake.ready.cancelled():
                loop.remove_reader(connection)
            self.unauthenticated.remove(handshake)
            self.open.discard(handshake)

    def refuse(self, why: OSError | str, peer: Peer, connection: str | None = None) -> None:
        """Log and report a client that could not be authenticated; many of them are a few log lines."""
        reason = why if isinstance(why, str) else failure_reason(why)
        self.report(
            RefusedLogin(
                listener=self.tls.listener,
                address=peer.address,
                port=peer.port,
                mechanism=TLS,
                why=reason,
                connection=connection,
            )
        )
        self.failed_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "a TLS client was refused: %s",
            reason,
            listener=self.tls.listener,
            address=peer.address,
        )

    def abort(self) -> None:
        """End all handshakes: the host stops."""
        for handshake in list(self.open):
            handshake.abort()


def failure_reason(error: OSError) -> str:
    """Return the reason of a failed handshake, in OpenSSL's words."""
    return getattr(error, "reason", None) or error.strerror or str(error) or type(error).__name__
