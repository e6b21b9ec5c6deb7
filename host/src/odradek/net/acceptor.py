"""Accepts the connections of one listener, as fast as `ConnectionQuotas` allows.

Nothing blocks: while a connection waits to enter, the listening sockets are not read and the other
connections wait in the kernel's backlog, in order.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.bounds.sampled_log import SampledLog
from odradek.metrics.sensor import NEVER_MS
from odradek.net.peer import Peer
from odradek.net.proxy_settings import ProxySettings
from odradek.quota.connection_quotas import Arrival, ConnectionQuotas, ConnectionThrottled, TooManyConnections
from odradek.quota.throttled_channels import ThrottledChannels
from odradek.waiting.clock import Timer
from odradek.wire.host_address import java_host_address

if TYPE_CHECKING:
    from odradek.net.proxy_headers import ProxyHeaders

log = logging.getLogger(__name__)

BACKLOG = 4096
EVERY_FAMILY = ("", "::")
"""Hosts that stand for the addresses of IPv4 and of IPv6."""
ACCEPTED_AT_ONCE = 4
"""Connections that are accepted in one turn of the loop: half a millisecond with their transports."""
REST_AFTER_ERROR_S = 1.0
"""Pause after the process ran out of descriptors (asyncio's ACCEPT_RETRY_DELAY)."""


async def listening_sockets(host: str, port: int, reuse_port: bool = False) -> list[socket.socket]:
    """Sockets that listen on every address of a host, all on one port.

    Args:
        host: A name or an address; empty, or ``::`` as in Java, for all addresses of this machine.
        port: 0 takes any free port.
        reuse_port: Share the port with other processes that do the same.

    Raises:
        OSError: The port is in use, or the address is not this machine's.
    """
    loop = asyncio.get_running_loop()
    where = None if host in EVERY_FAMILY else host
    found = await loop.getaddrinfo(where, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in dict.fromkeys((info[0], info[4]) for info in found):
            taken = sockets[0].getsockname()[1] if sockets else port
            try:
                sockets.append(listening_socket(family, (address[0], taken, *address[2:]), reuse_port))
            except OSError as error:
                if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                    raise
                missing = error  # for example IPv6 on a machine without it
        if not sockets:
            raise missing or OSError(errno.EADDRNOTAVAIL, "no address")
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


def listening_socket(family: int, address: tuple[object, ...], reuse_port: bool = False) -> socket.socket:
    """A socket that listens and does not block."""
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


class Acceptor:
    """Takes connections from listening sockets and hands over those that entered.

    Args:
        listener: The name that the quotas know.
        sockets: Listening sockets; closed with the acceptor.
        connected: Takes a connection that was counted, and must call ``quotas.dec`` when it ends.
        proxies: The load balancers; by default there are none.
        refused: Called with the address and the reason for each connection without a valid PROXY header.
    """

    def __init__(
        self,
        listener: str,
        sockets: list[socket.socket],
        quotas: ConnectionQuotas,
        timer: Timer,
        connected: Callable[[socket.socket, Peer], None],
        proxies: ProxySettings | None = None,
        refused: Callable[[str, str], None] = lambda _address, _why: None,
    ) -> None:
        self.listener = listener
        self.sockets = sockets
        self.quotas = quotas
        self.connected = connected
        self.loop = asyncio.get_running_loop()
        self.throttled = ThrottledChannels(timer)
        """Sockets of addresses that connect too often: open but not read until their time is over."""
        self.held: tuple[Arrival, socket.socket] | None = None
        """The connection that waits to enter."""
        self.next: deque[tuple[socket.socket, Peer]] = deque()
        """Connections whose PROXY headers were read meanwhile."""
        self.proxies: ProxyHeaders | None = None
        self.accepted: Callable[[socket.socket, Peer], None] = self.arrived
        """Takes each accepted connection."""
        if proxies is not None and proxies.is_required:
            from odradek.net.proxy_headers import ProxyHeaders

            most = quotas.descriptors.throttled
            self.proxies = ProxyHeaders(proxies, most, quotas.clock, timer, self.arrived, refused)
            self.accepted = self.proxies.accepted
        self.rest: asyncio.TimerHandle | None = None
        self.rejected_log = SampledLog(log)
        self.error_log = SampledLog(log)
        self.resume()

    def resume(self) -> None:
        """Start accepting."""
        for listening in self.sockets:
            self.loop.add_reader(listening, self.accept, listening)

    def pause(self) -> None:
        """Stop accepting."""
        for listening in self.sockets:
            self.loop.remove_reader(listening)

    def accept(self, listening: socket.socket) -> None:
        """Accept the connections in the backlog, or a portion of them, unless others have to end first."""
        if len(self.quotas.departing):
            return
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self.rest_after(error)
                return
            connection.setblocking(False)
            # an IPv4 address is printed by Java as it is
            host = address[0] if len(address) == 2 else java_host_address(address[0])
            self.accepted(connection, Peer(host, address[1]))
            if self.held is not None:
                return

    def rest_after(self, error: OSError) -> None:
        """Pause accepting for a while: a socket that cannot be accepted stays readable."""
        self.error_log.write(
            logging.ERROR,
            self.quotas.clock.monotonic_ms(),
            "cannot accept a connection",
            listener=self.listener,
            why=str(error),
        )
        self.pause()
        self.rest = self.loop.call_later(REST_AFTER_ERROR_S, self.resume)

    def arrived(self, connection: socket.socket, peer: Peer) -> None:
        """Let a connection enter, now or when the quotas allow it."""
        if self.held is not None:
            self.next.append((connection, peer))
            return
        arrival = self.quotas.arrive(self.listener, peer.address)
        if self.quotas.may_enter(arrival):
            self.enter(arrival, connection, peer)
            return
        self.held = arrival, connection
        self.pause()
        self.quotas.wait(arrival, lambda: self.waited(arrival, connection, peer))

    def waited(self, arrival: Arrival, connection: socket.socket, peer: Peer) -> None:
        """Let the held connection enter and accept again."""
        self.held = None
        self.enter(arrival, connection, peer)
        while self.next and self.held is None:
            self.arrived(*self.next.popleft())
        if self.held is None:
            self.resume()

    def enter(self, arrival: Arrival, connection: socket.socket, peer: Peer) -> None:
        """Hand a connection over unless its address has too many of them."""
        try:
            self.quotas.enter(arrival)
        except ConnectionThrottled as error:
            self.close_later(connection, error)
        except TooManyConnections as error:
            self.rejected_log.write(
                logging.INFO,
                self.quotas.clock.monotonic_ms(),
                "rejected a connection",
                address=error.address,
                limit=error.limit,
            )
            connection.close()
            self.quotas.dec(self.listener, peer.address)
        else:
            self.connected(connection, peer)

    def close_later(self, connection: socket.socket, error: ConnectionThrottled) -> None:
        """Keep a socket open without reading it, so that its client does not reconnect at once."""
        log.debug("throttled a connection", extra={"address": error.address, "for_ms": error.throttle_ms})
        most = self.quotas.descriptors.throttled // len(self.quotas.listeners)
        if self.throttled.size(error.start_ms) >= most:
            connection.close()
        else:
            self.throttled.throttle(error.throttle_ms, error.start_ms, on_end=connection.close)

    def close(self) -> None:
        """Close the listening sockets and the connections that did not enter."""
        self.pause()
        if self.rest is not None:
            self.rest.cancel()
        for listening in self.sockets:
            listening.close()
        self.sockets = []
        if self.proxies is not None:
            self.proxies.close()
        for connection, _ in self.next:
            connection.close()
        self.next.clear()
        if self.held is not None:
            arrival, connection = self.held
            self.held = None
            self.quotas.abandon(arrival)
            connection.close()
        self.throttled.release(NEVER_MS)
