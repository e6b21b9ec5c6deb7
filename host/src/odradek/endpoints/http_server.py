"""An HTTP server with limits of connections. A plugin that imports this depends on aiohttp.

It runs on the loop of its caller, and has neither a thread nor a clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from odradek.endpoints.request_log import RequestLog
from odradek.endpoints.shares import Shares, holder_of

SLACK_S: Final = 1.0
"""A handshake begins a moment after its connection was accepted."""


class BoundedServer(web.Server):
    """Counts a connection from its acceptance on, also while its TLS handshake is not complete.

    Connections beyond the limits are closed. Bodies of requests are not decompressed, which aiohttp does
    without a limit.
    """

    def __init__(
        self,
        handler: Any,
        *,
        connections_max: int,
        connections_max_per_ip: int,
        handshake_s: float,
        now_s: Callable[[], float],
        refused: Callable[[], object] = lambda: None,
        **options: Any,
    ) -> None:
        """Prepare.

        Args:
            handler: Answers a request.
            connections_max: The limit.
            connections_max_per_ip: The limit of one address of IPv4, or one /64 of IPv6.
            handshake_s: Time limit of a handshake, which the caller sets for the socket too.
            now_s: The time of the loop.
            refused: Called for each connection beyond a limit.
            options: As `aiohttp.web.Server`.
        """
        super().__init__(handler, logger=RequestLog(now_s), auto_decompress=False, **options)
        self.connections_max = connections_max
        self.handshake_s = handshake_s
        self.now_s = now_s
        self.refused = refused
        self.shares = Shares(connections_max_per_ip)
        self.holders: dict[web.RequestHandler, str] = {}
        """Whose share a connection is of."""
        self.expected: dict[web.RequestHandler, float] = {}
        """The latest time at which each accepted connection completes its handshake. asyncio does not tell a
        protocol that its handshake has failed."""

    def accept(self) -> web.RequestHandler:
        """The protocol of a new connection."""
        handler = self()
        if self.open_connections() < self.connections_max:
            self.expected[handler] = self.now_s() + self.handshake_s + SLACK_S
        else:
            self.refused()
        return handler

    def connection_made(self, handler: web.RequestHandler, transport: Any) -> None:
        """Count a connection on, or close it if it was beyond a limit."""
        holder = holder_of(str((transport.get_extra_info("peername") or ("",))[0]))
        is_counted = self.expected.pop(handler, None) is not None
        if is_counted and self.shares.take(holder):
            self.holders[handler] = holder
            super().connection_made(handler, transport)
            return
        if is_counted:
            self.refused()
        # Not at once: aiohttp begins a task for the connection now, which fails if that has ended before.
        self._loop.call_soon(transport.close)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """The end of a connection."""
        holder = self.holders.pop(handler, None)
        if holder is not None:
            self.shares.give_back(holder)
        super().connection_lost(handler, exc)

    def open_connections(self) -> int:
        """The number of connections."""
        now_s = self.now_s()
        self.expected = {each: end_s for each, end_s in self.expected.items() if end_s > now_s}
        return len(self.connections) + len(self.expected)
