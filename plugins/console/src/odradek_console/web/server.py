"""The server of the pages: uvicorn on a socket, with bounds for connections and senders, and a quick end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from odradek.endpoints import Address, RenewedTls, Shares, holder_of, parsed_ip
from odradek.endpoints.bad_requests import BadRequests
from odradek.endpoints.tls_entrance import TlsEntrance, address_of
from odradek_console.web.server_settings import ServerCounts, ServerSettings

log = logging.getLogger(__name__)

BACKLOG: Final = 128
GRACE_S: Final = 1.0
"""Time of the requests that are being answered when the server stops; streams are ended then."""
STOP_S: Final = 3
"""Time of requests that do not even end when their connection is closed."""


class Bounded(H11Protocol):
    """A connection that is closed if there are too many, or if its peer neither sends nor reads."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        server: WebServer,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(config, state, {}, loop)
        self.settings = server.settings
        self.counts = server.counts
        self.owner = server
        self.place: str | None = None
        """The address that has taken the place of this connection."""
        self.waiting: asyncio.TimerHandle | None = None
        self.stalling: asyncio.TimerHandle | None = None
        self.unsent_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound the number of connections, of all and of each address."""
        super().connection_made(transport)
        self.connections.discard(self)  # it has no place yet
        # Without it the body of an answer waits for 40 ms: asyncio sets it only where the protocol is known.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        address = address_of(transport)
        if self.owner.take(address):
            self.place = address
            self.connections.add(self)
            self.watch()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching, and give the share back."""
        self.forget()
        self.resume_writing()
        if self.place is not None:
            self.owner.give_back(self.place)
            self.place = None
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:  # uvicorn's, which would hold what is gone
            self.timeout_keep_alive_task.cancel()

    def data_received(self, data: bytes) -> None:
        """Look whether the headers of a request are still coming."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self.watch()
        else:
            self.forget()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request, also one that is found to be bad while it is being answered.

        h11's error is in a frame of its own traceback: let both go.
        """
        error = sys.exception()
        if error is not None:
            error.with_traceback(None)
        self.owner.bad_requests.write(self.loop.time(), self.place, error or msg)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def watch(self) -> None:
        """Close the connection after a time, unless that time is running already."""
        if self.waiting is None:
            self.waiting = self.loop.call_later(self.settings.header_timeout_s, self.give_up)

    def forget(self) -> None:
        """A request is there, or the connection is gone."""
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None

    def pause_writing(self) -> None:
        """Look later whether the peer reads."""
        super().pause_writing()
        self.look_later()

    def resume_writing(self) -> None:
        """The peer has read enough, or the connection is gone."""
        if self.stalling is not None:
            self.stalling.cancel()
            self.stalling = None
        super().resume_writing()

    def look_later(self) -> None:
        self.unsent_bytes = self.transport.get_write_buffer_size()
        self.stalling = self.loop.call_later(self.settings.stall_timeout_s, self.look)

    def look(self) -> None:
        """Close the connection if the peer has read nothing."""
        if self.transport.get_write_buffer_size() < self.unsent_bytes:
            self.look_later()
        else:
            self.give_up()

    def give_up(self) -> None:
        """Close the connection."""
        self.waiting = None
        self.counts.slow_connections += 1
        self.transport.abort()


class WebServer(uvicorn.Server):
    """Serves an application until it is told to stop.

    Args:
        app: The application.
        settings: Where to listen, and the bounds.
        ready: Called with the address of the page once it can be opened.
        counts: Where refused connections are counted.

    Raises:
        OSError: The address cannot be listened on, or a file of TLS cannot be read.
        ValueError: A file of TLS is not usable.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        ready: Callable[[str], None],
        counts: ServerCounts | None = None,
    ) -> None:
        self.counts = counts or ServerCounts()
        config = uvicorn.Config(
            app,
            access_log=False,
            backlog=BACKLOG,
            date_header=True,
            h11_max_incomplete_event_size=settings.max_header_bytes,
            http=Bounded,
            lifespan="off",
            log_config=None,
            log_level="error",
            loop="auto",  # uvloop's if that is installed
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_S,
            timeout_keep_alive=settings.idle_timeout_s,
            ws="none",
        )
        config.load()
        config.ssl = RenewedTls(settings.tls).context() if settings.tls is not None else None
        super().__init__(config)
        self.settings = settings
        self.shares = Shares(settings.max_connections_per_ip)
        self.bad_requests = BadRequests(log)
        self.entrance: TlsEntrance | None = None
        self.ready = ready
        self.socket = listening_socket(settings.address)
        self.port = int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address of the page. A server that listens on all addresses is named by one that works here."""
        host = self.settings.address.host
        found = parsed_ip(host)
        if found is not None and found.is_unspecified:
            host = "localhost"
        scheme = "http" if self.config.ssl is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def stop(self) -> None:
        """Stop. Any thread, and the handler of a signal, may call it."""
        self.should_exit = True

    def run_until_stopped(self) -> None:
        """Serve."""
        self.run(sockets=[self.socket])

    def capture_signals(self) -> AbstractContextManager[Any]:  # type: ignore[override]
        """Leave signals to the program."""
        return nullcontext()

    def open_connections(self) -> int:
        """The number of connections, also of those whose TLS handshake is not done."""
        return len(self.server_state.connections) + (0 if self.entrance is None else len(self.entrance))

    def take(self, address: str) -> bool:
        """Take the place of one more connection; False if it is beyond a limit. A trusted proxy has no share:
        it may have all.
        """
        if self.open_connections() < self.settings.max_connections and (
            self.settings.proxies.is_trusted(address) or self.shares.take(holder_of(address))
        ):
            return True
        self.counts.refused_connections += 1
        return False

    def give_back(self, address: str) -> None:
        """A place is free."""
        if not self.settings.proxies.is_trusted(address):
            self.shares.give_back(holder_of(address))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell so."""
        loop = asyncio.get_running_loop()

        def make() -> Bounded:
            return Bounded(self.config, self.server_state, self, loop)

        accept: Callable[[], Any] = make
        if self.config.ssl is not None:
            handshake_s = self.settings.handshake_timeout_s
            self.entrance = TlsEntrance(self.config.ssl, handshake_s, loop, make, self.take, self.give_back)
            accept = self.entrance.accept
        self.servers = [await loop.create_server(accept, sock=self.socket)]
        self.started = True
        self.ready(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is being answered, and then what is not ending by itself."""
        if self.entrance is not None:
            self.entrance.close()
        asyncio.get_running_loop().call_later(GRACE_S, self.hang_up)
        await super().shutdown(sockets)

    def hang_up(self) -> None:
        """Close all connections: streams end, and requests have had their time."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Bounded):
                connection.transport.abort()


def listening_socket(address: Address) -> socket.socket:
    """A socket that listens.

    Raises:
        OSError: The name is unknown, or the address is in use or not of this machine.
    """
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, where = found[0]
    takes_ipv4 = address.host == "::"
    return socket.create_server(where[:2], family=family, backlog=BACKLOG, dualstack_ipv6=takes_ipv4)
