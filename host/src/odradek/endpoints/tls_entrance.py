"""Connections to a TLS listener of a plugin, counted from their acceptance on.

A TLS server of the loops tells nothing of a connection before its handshake is done: a stranger who sends
nothing would hold the memory of one for each connection, however many are allowed. So the loop gets a plain
server, and a connection that has its place gets TLS.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any


class NoTlsLoop(OSError):
    """The loop must not serve TLS: each handshake that fails would stay in memory."""


def check_loop(loop: Any) -> None:
    """Refuse a loop that keeps 256 KiB for each handshake that fails, until a collection: asyncio's before
    Python 3.13 (python/cpython#109534).

    Raises:
        NoTlsLoop: It is such a loop.
    """
    if sys.version_info < (3, 13) and type(loop).__module__.startswith("asyncio."):
        raise NoTlsLoop(
            "a TLS listener needs uvloop (odradek[fast]) or Python 3.13: the loop of this Python "
            "keeps 256 KiB for each handshake that fails"
        )


def address_of(transport: Any) -> str:
    """The peer's address; empty if it has left already."""
    return str((transport.get_extra_info("peername") or ("",))[0])


class TlsEntrance:
    """Lets in the connections of one listener.

    Args:
        tls: The certificates.
        handshake_s: Time limit of a handshake.
        loop: The running loop.
        make: Makes the protocol of a connection, after its handshake.
        take: Takes a place for a connection from an address; False if there is none.
        give_back: Gives such a place back. The protocol takes its own.

    Raises:
        NoTlsLoop: See `check_loop`.
    """

    def __init__(
        self,
        tls: ssl.SSLContext,
        handshake_s: float,
        loop: Any,
        make: Callable[[], Any],
        take: Callable[[str], bool],
        give_back: Callable[[str], None],
    ) -> None:
        check_loop(loop)
        self.tls = tls
        self.handshake_s = handshake_s
        self.loop = loop
        self.make = make
        self.take = take
        self.give_back = give_back
        self.handshakes: set[Any] = set()
        """Those that are not done."""

    def __len__(self) -> int:
        return len(self.handshakes)

    def accept(self) -> Arrival:
        """The first protocol of a new connection."""
        return Arrival(self)

    def begin(self, transport: Any) -> None:
        """Begin the handshake of a connection that has a place. The transport does not outlive this: uvloop
        would read from it before TLS does.
        """
        try:
            connection = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        except OSError:  # too many open files
            transport.abort()
            return
        address = address_of(transport)
        if self.take(address):
            newcomer = Newcomer(self, address)
            newcomer.handshake = self.loop.create_task(self.shake_hands(newcomer, connection))
            newcomer.handshake.add_done_callback(newcomer.leave)
            self.handshakes.add(newcomer.handshake)
        else:
            connection.close()
        transport.abort()

    async def shake_hands(self, newcomer: Newcomer, connection: socket.socket) -> None:
        """Let the application go on after a handshake."""
        connection.setblocking(False)
        try:
            await self.loop.connect_accepted_socket(
                lambda: newcomer, connection, ssl=self.tls, ssl_handshake_timeout=self.handshake_s
            )
        except OSError as error:  # also ssl.SSLError
            error.with_traceback(None)  # a frame of it holds the future that holds the error
            connection.close()

    def close(self) -> None:
        """End all handshakes: the listener stops."""
        for task in list(self.handshakes):
            task.cancel()


class Arrival:
    """The protocol of a connection that has just been accepted."""

    def __init__(self, entrance: TlsEntrance) -> None:
        self.entrance = entrance

    def connection_made(self, transport: Any) -> None:
        self.entrance.begin(transport)

    def connection_lost(self, _: Exception | None) -> None:
        """Only this transport is gone."""


class Newcomer:
    """The protocol of a connection until its handshake is done."""

    def __init__(self, entrance: TlsEntrance, address: str) -> None:
        self.entrance = entrance
        self.address = address
        self.handshake: Any = None
        """None when its place is given back."""

    def connection_made(self, transport: Any) -> None:
        """The handshake is done: let the application go on."""
        self.leave()
        protocol = self.entrance.make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def leave(self, _: object = None) -> None:
        """Give the place back, once."""
        if self.handshake is not None:
            self.entrance.handshakes.discard(self.handshake)
            self.handshake = None
            self.entrance.give_back(self.address)
