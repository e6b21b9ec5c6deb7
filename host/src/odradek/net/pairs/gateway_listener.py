"""The listener of a gateway."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any, cast

from odradek.bounds.sampled_log import SampledLog
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.net.acceptor import listening_sockets
from odradek.net.listener import Listener
from odradek.net.pairs.client_side import ClientSide
from odradek.net.pairs.gateway import Gateway
from odradek.net.pairs.routing import Routing
from odradek.plugin.context import ConnectionContext

log = logging.getLogger(__name__)


class GatewayListener(Listener):
    """Accepts clients and gives each a connection to the broker that it has dialed."""

    def __init__(self, *arguments: Any, gateway: Gateway, routing: Routing, **more: Any) -> None:
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

    def note_failure(self, failure: PairFailure, context: ConnectionContext) -> None:
        """Log why a pair was closed by the gateway itself; many of them are a few lines."""
        self.refused += 1
        self.failure_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "closing a connection: %s",
            str(failure),
            cause=str(failure.cause),
            connection=context.connection_id,
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
