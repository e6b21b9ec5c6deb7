"""Lives of connections that leave nothing: how a client connects, what it sends, and how it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from random import Random
from typing import Final

PATIENCE_S: Final = 30.0
AT_ONCE: Final = 20
"""Connections of a batch: all of them are open at the same time. Some pages take 32 of an address."""
SOURCES: Final = tuple(f"127.0.0.{number}" for number in range(10, 30))
"""Addresses of clients: one alone runs out of ports, or into limits of an address."""
REFUSED_SOURCE: Final = "127.0.0.9"
"""The address that hosts of the bench refuse."""
GARBAGE_BYTES: Final = 6
RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Spot:
    """A listener, and what its clients say.

    Args:
        name: In the table.
        port: Of 127.0.0.1.
        request: The first request in full. Its answer is of any length.
        context: The TLS of a client; None in plaintext.
        answers: Whether the listener has to answer the request.
        refuses: Whether it refuses clients of `REFUSED_SOURCE`.
        time_out_s: Time after which it closes a connection that says nothing; None if it does not.
    """

    name: str
    port: int
    request: bytes
    context: ssl.SSLContext | None = None
    answers: bool = True
    refuses: bool = False
    time_out_s: float | None = None

    @property
    def hello(self) -> bytes:
        """What a client sends first."""
        if self.context is None:
            return self.request
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()


def connect(spot: Spot, source: str) -> socket.socket:
    """A connection in TCP."""
    connection = socket.socket()
    connection.settimeout(PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    connection.bind((source, 0))
    connection.connect(("127.0.0.1", spot.port))
    return connection


def secured(spot: Spot, connection: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    """The connection with its handshake done, if the listener has TLS."""
    if context is None:
        return connection
    return context.wrap_socket(connection, server_hostname="localhost")


def reset(connection: socket.socket) -> None:
    """Close with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def ended(connection: socket.socket) -> None:
    """Wait until the server has closed, and close."""
    with contextlib.suppress(ConnectionError), connection:
        while connection.recv(65536):
            pass


def silent(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They say nothing and leave."""
    for each in connections:
        each.close()


def garbage(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They send a few bytes that mean nothing, and leave."""
    for each in connections:
        with contextlib.suppress(ConnectionError):
            each.sendall(chance.randbytes(GARBAGE_BYTES))
        each.close()


def half(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They leave in the middle of their first message."""
    hello = spot.hello
    for each in connections:
        each.sendall(hello[: chance.randrange(1, len(hello))])
    for each in connections:
        each.close()


def reset_early(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They reset in the middle of their first message."""
    hello = spot.hello
    for each in connections:
        each.sendall(hello[: chance.randrange(1, len(hello))])
    for each in connections:
        reset(each)


def untrusting(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They do not trust the certificate of the server."""
    strict = ssl.create_default_context()
    for each in connections:
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            strict.wrap_socket(each, server_hostname="localhost")
        each.close()


def aborted(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They reset in the middle of a request, after the handshake."""
    for each in connections:
        connection = secured(spot, each, spot.context)
        connection.sendall(spot.request[: chance.randrange(1, len(spot.request))])
        reset(connection)


def complete(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They ask, are answered, and close."""
    for each in connections:
        with secured(spot, each, spot.context) as connection:
            connection.sendall(spot.request)
            if spot.answers:
                assert connection.recv(65536), f"no answer: {spot.name}"


def refused(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """The listener closes them at once."""
    for each in connections:
        ended(each)


def timed_out(spot: Spot, connections: list[socket.socket], chance: Random) -> None:
    """They say nothing, and the listener closes them."""
    for each in connections:
        ended(each)


End = Callable[[Spot, list[socket.socket], Random], None]
ENDS: Final[Mapping[str, End]] = {
    each.__name__.replace("_", " "): each
    for each in (silent, garbage, half, reset_early, untrusting, aborted, complete, refused, timed_out)
}


def ends_of(spot: Spot) -> list[str]:
    """The ends that a listener can see."""
    here = dict(ENDS)
    if spot.context is None:
        del here["untrusting"]
    if not spot.refuses:
        del here["refused"]
    if spot.time_out_s is None:
        del here["timed out"]
    return list(here)


def live(spot: Spot, end: str, count: int, seed: int = 0) -> None:
    """Let so many connections live, a few at a time.

    Raises:
        OSError: The server does not accept.
    """
    chance = Random(seed)
    at_once = min(count, 25 * AT_ONCE if end == "timed out" else AT_ONCE)
    for start in range(0, count, at_once):
        sources = [REFUSED_SOURCE if end == "refused" else chance.choice(SOURCES)] * at_once
        connections = [connect(spot, each) for each in sources[: count - start]]
        ENDS[end](spot, connections, chance)


def live_elsewhere(spot: Spot, end: str, count: int, seed: int = 0) -> None:
    """`live` in a process of its own, so that this one can measure meanwhile.

    Raises:
        RuntimeError: It failed; its traceback is on standard error.
    """
    process = get_context("fork").Process(target=live, args=(spot, end, count, seed), daemon=True)
    process.start()
    process.join()
    if process.exitcode != os.EX_OK:
        raise RuntimeError(f"{spot.name}, {end}: the clients failed with status {process.exitcode}")
