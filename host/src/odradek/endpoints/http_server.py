"""An HTTP server with limits of connections. A plugin that imports this depends on aiohttp.

It runs on the loop of its caller, and has neither a thread nor a clock of its own.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web

from odradek.endpoints.request_log import RequestLog
from odradek.endpoints.shares import Shares, holder_of
from odradek.endpoints.tls_entrance import TlsEntrance, address_of


class Connection(web.RequestHandler):
    """A connection. Its errors do not keep it."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer. The frame of a bad request holds its error, and the traceback of the error the frame."""
        if exc is not None and (status < 500 or isinstance(exc, ConnectionError)):
            exc.with_traceback(None)
        return super().handle_error(request, status, exc, message)


class BoundedServer(web.Server):
    """Counts a connection from its acceptance on, also while its TLS handshake is not complete.

    Connections beyond the limits are closed. Bodies of requests are not decompressed, which aiohttp does
    without a limit.
    """

    def __init__(
        self,
        handler: Any,
        *,
        loop: Any,
        connections_max: int,
        connections_max_per_ip: int,
        tls: ssl.SSLContext | None,
        handshake_s: float,
        refused: Callable[[], object] = lambda: None,
        handler_cancellation: bool = False,
        **options: Any,
    ) -> None:
        """Prepare.

        Args:
            handler: Answers a request.
            loop: The running loop. Its ``create_server`` gets `accept`, and no TLS.
            connections_max: The limit.
            connections_max_per_ip: The limit of one address of IPv4, or one /64 of IPv6.
            tls: The certificates; None for plain HTTP.
            handshake_s: Time limit of a handshake.
            refused: Called for each connection beyond a limit.
            handler_cancellation: As `aiohttp.web.Server`.
            options: As `aiohttp.web.Server`.

        Raises:
            NoTlsLoop: The loop must not serve TLS.
        """
        super().__init__(handler, loop=loop, handler_cancellation=handler_cancellation)
        log: Any = RequestLog(loop.time)
        self.make = partial(Connection, self, loop=loop, logger=log, auto_decompress=False, **options)
        self.connections_max = connections_max
        self.refused = refused
        self.shares = Shares(connections_max_per_ip)
        self.holders: dict[web.RequestHandler, str] = {}
        """The address of a connection that has its place."""
        self.entrance = (
            None if tls is None else TlsEntrance(tls, handshake_s, loop, self.make, self.take, self.give_back)
        )

    def accept(self) -> Any:
        """The protocol of a new connection."""
        return self.make() if self.entrance is None else self.entrance.accept()

    def take(self, address: str) -> bool:
        """Take the place of one more connection; False if it is beyond a limit."""
        if self.open_connections() < self.connections_max and self.shares.take(holder_of(address)):
            return True
        self.refused()
        return False

    def give_back(self, address: str) -> None:
        """A place is free."""
        self.shares.give_back(holder_of(address))

    def connection_made(self, handler: web.RequestHandler, transport: Any) -> None:
        """Count a connection on, or close it if it is beyond a limit."""
        address = address_of(transport)
        if self.take(address):
            self.holders[handler] = address
            super().connection_made(handler, transport)
            return
        # Not at once: aiohttp begins a task for the connection now, which fails if that has ended before.
        self._loop.call_soon(transport.close)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """The end of a connection."""
        address = self.holders.pop(handler, None)
        if address is not None:
            self.give_back(address)
        super().connection_lost(handler, exc)

    def open_connections(self) -> int:
        """The number of connections, also of those whose handshake is not done."""
        return len(self.connections) + (0 if self.entrance is None else len(self.entrance))

    async def shutdown(self, timeout: float | None = None) -> None:
        """Close all connections, after so many seconds for their requests."""
        if self.entrance is not None:
            self.entrance.close()
        await super().shutdown(timeout)
