"""The listener of a gateway: a bootstrap port, and a port for each node id."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any, cast

from odradek.gateway.gateway_settings import PORT_START, GatewaySettings
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.plugin.config import ConfigError
from odradek.plugin.context import ConnectionContext
from odradek.sampled_log import SampledLog
from odradek.server.gateway.client_side import LINGER_S, ClientSide
from odradek.server.gateway.gateway import Gateway
from odradek.server.gateway.socket_end import SocketEnd
from odradek.server.sockets.acceptor import listening_sockets
from odradek.server.sockets.listener import Listener, ListenerAddress

log = logging.getLogger(__name__)

LAST_PORT = 65_535


def first_port(address: ListenerAddress, settings: GatewaySettings) -> int:
    """The port of the first node id at a listener; 0 takes any free ones."""
    return settings.port_start or (address.port + 1 if address.port else 0)


class GatewayListener(Listener):
    """Accepts clients and gives each a connection to the broker of the port that it has dialed."""

    def __init__(
        self, *arguments: Any, gateway: Gateway, settings: GatewaySettings, advertised_host: str, **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self.gateway = gateway
        self.settings = settings
        """Of this listener."""
        self.advertised_host = advertised_host
        self.addresses = gateway.new_addresses()
        self.nodes_by_port: dict[int, int] = {}
        self.failure_log = SampledLog(log)

    async def listening(self) -> list[socket.socket]:
        """Bind the bootstrap port and the port of each node, whether or not the node is known yet.

        Raises:
            OSError: The bootstrap port is in use, or the address is not this machine's.
            ConfigError: The same for the port of a node.
        """
        settings = self.settings
        sockets = await listening_sockets(self.address.host, self.address.port, settings.reuse_port)
        ports: list[int] = []
        start = first_port(self.address, settings)
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
        advertised = settings.advertised_port_start
        self.addresses.host = self.advertised_host
        self.addresses.ports = ports if advertised is None else range(advertised, advertised + len(ports))
        return sockets

    async def node_sockets(self, node_id: int, port: int) -> list[socket.socket]:
        """Bind the port of a node.

        Raises:
            ConfigError: It cannot be bound.
        """
        try:
            return await listening_sockets(self.address.host, port, self.settings.reuse_port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            problem = (
                f"cannot listen on {self.address.name}://{self.address.bracketed}:{port} for node {node_id}: "
            )
            problem += reason.lower()
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

    def close_idle(self, now_ms: int, max_idle_ms: int) -> int:
        """Close clients that have never sent a request, after ``max_idle_ms``, and idle pairs after the
        gateway's own time.
        """
        idle = []
        for channel in self.channels:
            side: ClientSide = cast(Any, channel)
            since_ms = side.idle_since_ms()
            limit_ms = max_idle_ms if side.pair is None else self.settings.max_idle_ms
            if since_ms is not None and limit_ms is not None and now_ms - since_ms >= limit_ms:
                idle.append(side)
        for side in idle:
            side.end(Cause.IDLE)
        return len(idle)

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
