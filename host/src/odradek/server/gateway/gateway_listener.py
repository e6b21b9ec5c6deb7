"""The listener of a gateway: a bootstrap port, and a port for each node id."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any

from odradek.gateway.gateway_settings import PORT_START
from odradek.gateway.pair_failure import PairFailure
from odradek.plugin.config import ConfigError
from odradek.plugin.context import ConnectionContext
from odradek.sampled_log import SampledLog
from odradek.server.gateway.client_side import LINGER_S, ClientSide
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.socket_end import SocketEnd
from odradek.server.sockets.acceptor import listening_sockets
from odradek.server.sockets.listener import Listener

log = logging.getLogger(__name__)

LAST_PORT = 65_535


class GatewayListener(Listener):
    """Accepts clients and gives each a connection to the broker of the port that it has dialed."""

    def __init__(self, *arguments: Any, gateway: Gateway, advertised_host: str, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.gateway = gateway
        self.advertised_host = advertised_host
        self.nodes_by_port: dict[int, int] = {}
        self.failure_log = SampledLog(log)

    async def listening(self) -> list[socket.socket]:
        """Bind the bootstrap port and the port of each node, whether or not the node is known yet.

        Raises:
            OSError: The bootstrap port is in use, or the address is not this machine's.
            ConfigError: The same for the port of a node.
        """
        sockets = await super().listening()
        ports: list[int] = []
        settings = self.gateway.settings
        bootstrap = int(sockets[0].getsockname()[1])
        start = settings.port_start or (bootstrap + 1 if self.address.port else 0)
        try:
            if start and start + len(settings.nodes) - 1 > LAST_PORT:
                problem = f"{len(settings.nodes)} node ids from port {start} on end beyond port {LAST_PORT}"
                raise ConfigError(PORT_START, problem)
            for place, node_id in enumerate(settings.nodes):
                found = await self.node_sockets(node_id, start and start + place)
                sockets += found
                ports.append(int(found[0].getsockname()[1]))
                self.nodes_by_port[ports[-1]] = node_id
        except BaseException:
            for each in sockets:
                each.close()
            raise
        self.gateway.bound(self.advertised_host, ports)
        return sockets

    async def node_sockets(self, node_id: int, port: int) -> list[socket.socket]:
        """Bind the port of a node.

        Raises:
            ConfigError: It cannot be bound.
        """
        try:
            return await listening_sockets(self.address.host, port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            problem = f"cannot listen on port {port} for node {node_id}: {reason.lower()}"
            raise ConfigError(PORT_START, problem) from error

    def make_channel(self) -> Any:
        return ClientSide(self)

    def node_of(self, port: int) -> int | None:
        """The node of a bound port; None for the bootstrap port."""
        return self.nodes_by_port.get(port)

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

    def linger(self, end: SocketEnd) -> None:
        """End a connection that is being closed, if its peer does not take the rest."""
        self.loop.call_later(LINGER_S, end.abort)

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
        await super().close(timeout_s)
