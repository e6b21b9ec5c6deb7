"""Connections through a load balancer: their PROXY headers are read before anything else is known of them.

A header is read from the accepted socket, exactly to its end. The bytes after it, which may be a TLS
handshake, stay in the socket for the transport.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from odradek.net.peer import Peer
from odradek.net.proxy_settings import TRUSTED, ProxySettings
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.wire.errors import WireError
from odradek.wire.proxy_header import HEADER_MAX_BYTES, read_proxy_header


@dataclass(slots=True, eq=False)
class Waiting:
    """A connection whose header is incomplete."""

    connection: socket.socket
    proxy: Peer
    deadline: TimerTask
    read: bytes = b""
    """The part of the header that was taken from the socket."""


class ProxyHeaders:
    """Reads the headers of one listener's connections.

    Args:
        settings: The load balancers, and limits.
        most: The most connections without a header, of all load balancers.
        clock: The time.
        timer: Ends the waits.
        arrived: Takes a connection whose client is known.
        refused: Called with the reason when a connection is closed.
    """

    def __init__(
        self,
        settings: ProxySettings,
        most: int,
        clock: Clock,
        timer: Timer,
        arrived: Callable[[socket.socket, Peer], None],
        refused: Callable[[str, str], None],
    ) -> None:
        self.settings = settings
        self.most = most
        self.clock = clock
        self.timer = timer
        self.arrived = arrived
        self.refused = refused
        self.loop = asyncio.get_running_loop()
        self.waiting: set[Waiting] = set()
        self.by_proxy: Counter[str] = Counter()

    def accepted(self, connection: socket.socket, proxy: Peer) -> None:
        """Read the header of a connection, now or when it arrives."""
        if not self.settings.trusts(proxy.address):
            self.refuse(connection, proxy, f"the address is not in {TRUSTED}")
        elif self.by_proxy[proxy.address] >= self.settings.most_waiting or len(self.waiting) >= self.most:
            self.refuse(connection, proxy, "too many connections wait for their PROXY header")
        else:
            deadline_ms = self.clock.monotonic_ms() + self.settings.timeout_ms
            waiting = Waiting(connection, proxy, self.timer.schedule(deadline_ms, lambda: self.late(waiting)))
            self.waiting.add(waiting)
            self.by_proxy[proxy.address] += 1
            self.loop.add_reader(connection, self.read, waiting)
            self.read(waiting)

    def read(self, waiting: Waiting) -> None:
        """Take the header from the socket, or the part of it that is there."""
        connection, proxy = waiting.connection, waiting.proxy
        try:
            data = connection.recv(HEADER_MAX_BYTES - len(waiting.read), socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.forget(waiting)
            connection.close()  # a load balancer that only asks whether the port is open
            return
        try:
            header = read_proxy_header(waiting.read + data)
        except WireError as error:
            self.forget(waiting)
            self.refuse(connection, proxy, str(error))
            return
        if header is None:
            waiting.read += connection.recv(len(data))
            return
        connection.recv(header.size_bytes - len(waiting.read))
        self.forget(waiting)
        self.arrived(connection, proxy if header.source is None else Peer(*header.source))

    def late(self, waiting: Waiting) -> None:
        """The time of a connection is over."""
        self.forget(waiting)
        self.refuse(waiting.connection, waiting.proxy, "the PROXY header did not arrive in time")

    def refuse(self, connection: socket.socket, proxy: Peer, why: str) -> None:
        """Close a connection without an answer."""
        connection.close()
        self.refused(f"{proxy.address}:{proxy.port}", why)

    def forget(self, waiting: Waiting) -> None:
        """Stop waiting for a header."""
        self.loop.remove_reader(waiting.connection)
        waiting.deadline.cancel()
        self.waiting.discard(waiting)
        self.by_proxy[waiting.proxy.address] -= 1
        if not self.by_proxy[waiting.proxy.address]:
            del self.by_proxy[waiting.proxy.address]

    def close(self) -> None:
        """Close the connections whose header is incomplete."""
        for waiting in list(self.waiting):
            self.forget(waiting)
            waiting.connection.close()
