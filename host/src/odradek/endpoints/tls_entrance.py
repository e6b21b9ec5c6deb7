"""Connections to a TLS listener of a plugin, counted from their acceptance on.

The loops make the protocol of a connection before its handshake, and do not tell it of a failure. The one
here is small, and makes that of the application when the handshake is done.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakSet


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


class TlsEntrance:
    """Lets in the connections of one listener.

    Args:
        tls: The certificates.
        handshake_s: Time limit of a handshake.
        loop: The running loop.
        make: Makes the protocol of a connection, after its handshake.
        has_room: Whether one more connection may come. If not, it is closed after its handshake.

    Raises:
        NoTlsLoop: See `check_loop`.
    """

    def __init__(
        self,
        tls: ssl.SSLContext,
        handshake_s: float,
        loop: Any,
        make: Callable[[], Any],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        check_loop(loop)
        self.options: dict[str, Any] = {"ssl": tls, "ssl_handshake_timeout": handshake_s}
        """For ``create_server``."""
        self.make = make
        self.has_room = has_room
        self.handshakes: WeakSet[Newcomer] = WeakSet()
        """Those that are not done. The loop, which does not tell of a failure, lets go of their protocols."""

    def __len__(self) -> int:
        return len(self.handshakes)

    def accept(self) -> Newcomer:
        """The first protocol of a new connection."""
        newcomer = Newcomer(self)
        if self.has_room():
            self.handshakes.add(newcomer)
        return newcomer


class Newcomer:
    """The protocol of a connection until its handshake is done."""

    def __init__(self, entrance: TlsEntrance) -> None:
        self.entrance = entrance

    def connection_made(self, transport: Any) -> None:
        """Let the application go on."""
        if self not in self.entrance.handshakes:
            transport.abort()
            return
        self.entrance.handshakes.discard(self)
        protocol = self.entrance.make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)

    def connection_lost(self, _: Exception | None) -> None:
        """There was no room."""

    def data_received(self, _: bytes) -> None:
        """There was no room."""

    def eof_received(self) -> None:
        """There was no room."""
