"""One listening socket and the channels that came through it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from odradek.broker.routing import Dispatcher
from odradek.clock import Clock
from odradek.plugin.context import ConnectionContext
from odradek.server.channel import Channel
from odradek.server.large_frame import SHARED_BUFFER_BYTES

BACKLOG = 4096
WRITE_HIGH_WATER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """``NAME://HOST:PORT`` of the configuration."""

    name: str
    host: str
    port: int
    """0 takes any free port."""
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def java_host_address(text: str) -> str:
    """An address as Java's ``getHostAddress`` prints it, which is what a match pattern is compared with."""
    address, _, scope = text.partition("%")
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return f"{groups}%{scope}" if scope else groups


class Listener:
    """Accepts connections and keeps their channels."""

    def __init__(
        self,
        address: ListenerAddress,
        *,
        dispatcher: Dispatcher,
        clock: Clock,
        node_id: int,
        max_request_bytes: int,
        disconnected: Callable[[str], None],
    ) -> None:
        self.address = address
        self.dispatcher = dispatcher
        self.clock = clock
        self.node_id = node_id
        self.max_request_bytes = max_request_bytes
        self.disconnected = disconnected
        self.channels: set[Channel] = set()
        self.accepted = 0
        self.refused = 0
        """Connections closed because of bytes that made no sense."""
        self.draining = False
        """The host stops: channels close as soon as they owe no answer."""
        self.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
        """Where the rest of large frames is received; see `LargeFrame`."""
        self.serial = count()
        self.loop: asyncio.AbstractEventLoop
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address is in use or not this machine's.
        """
        self.loop = asyncio.get_running_loop()
        self.server = await self.loop.create_server(
            lambda: Channel(self), self.address.host or None, self.address.port, backlog=BACKLOG
        )

    @property
    def bound_port(self) -> int:
        """The real port, also where the configuration says 0."""
        assert self.server is not None
        return int(self.server.sockets[0].getsockname()[1])

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        """A connection was accepted."""
        self.accepted += 1
        self.channels.add(channel)
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        connected: socket.socket | None = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        local: tuple[Any, ...] = transport.get_extra_info("sockname") or ("unknown", 0)
        remote: tuple[Any, ...] = transport.get_extra_info("peername") or ("0.0.0.0", 0)
        return ConnectionContext(
            connection_id=f"{local[0]}:{local[1]}-{remote[0]}:{remote[1]}-{next(self.serial)}",
            listener_name=self.address.name,
            security_protocol=self.address.security_protocol,
            client_address=java_host_address(str(remote[0])),
            client_port=int(remote[1]),
            node_id=self.node_id,
        )

    def closed(self, channel: Channel) -> None:
        """A connection is gone."""
        self.channels.discard(channel)
        self.disconnected(channel.context.connection_id)

    def close_idle(self, now_ms: int, max_idle_ms: int) -> int:
        """Close the channels on which nothing happened for ``max_idle_ms``; how many."""
        idle = [
            channel
            for channel in self.channels
            if (since_ms := channel.idle_since_ms()) is not None and now_ms - since_ms >= max_idle_ms
        ]
        for channel in idle:
            channel.close()
        return len(idle)

    async def close(self, timeout_s: float) -> None:
        """Accept no more, answer what is owed within ``timeout_s`` and close every channel."""
        self.draining = True
        if self.server is not None:
            self.server.close()
        for channel in list(self.channels):
            channel.drain()
        deadline_s = self.loop.time() + timeout_s
        while self.channels and self.loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        for channel in list(self.channels):
            channel.transport.abort()
        await asyncio.sleep(0)  # lets the aborted channels hear of it
