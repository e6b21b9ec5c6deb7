"""What lives of connections leave in memory, with the garbage collector off."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from support.certificates import authority
from support.waiting import PATIENCE_S

LIVES = 8
"""More than what a host makes meanwhile for itself, such as an upkeep's timer."""
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: the connection is reset when it is closed."""

Client = Callable[[socket.socket], object]
"""What one client does with its connection, on a thread. The connection is closed afterwards."""


def by_class(objects: Iterable[object]) -> Counter[str]:
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, objects))


@contextlib.contextmanager
def collected() -> Iterator[list[object]]:
    """The garbage that the body of the statement makes. Nothing is collected before its end."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[object] = []
    try:
        yield found
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def left_by(life: Callable[[], Awaitable[object]]) -> Counter[str]:
    """The objects that each life leaves, by class: those that only a collection frees, and those of a
    connection that something still holds.
    """
    for _ in range(2):  # what is made once
        await life()
    before = by_class(gc.get_objects())
    with collected() as garbage:
        for _ in range(LIVES):
            await life()
    held = by_class(gc.get_objects()) - before
    found = by_class(garbage) + Counter({name: held[name] for name in held if is_of_connection(name)})
    return Counter({name: number // LIVES for name, number in found.items() if number >= LIVES})


def is_of_connection(name: str) -> bool:
    """Whether no object of the class may outlive its connection. Cancelled timers may, for a time."""
    return name.startswith(("aiohttp", "odradek", "uvicorn")) and name != "odradek.waiting.clock.TimerTask"


async def left_by_loop() -> Counter[str]:
    """What a connection of a bare server leaves: the garbage of the loop itself."""
    lost: list[bool] = []

    class Bare(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            lost.append(True)

    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def life() -> None:
        lost.clear()
        await asyncio.to_thread(connection, port, lambda plain: None)
        await ended(lambda: bool(lost))

    async with server:
        return await left_by(life)


async def ended(condition: Callable[[], bool]) -> None:
    """Let the loop go on until the condition holds, and a few passes more."""
    end_s = time.monotonic() + PATIENCE_S
    await asyncio.sleep(0.001)  # a connection that has come is accepted
    while not condition():
        assert time.monotonic() < end_s, "the connection has not ended"
        await asyncio.sleep(0.001)
    for _ in range(5):
        await asyncio.sleep(0)


def connection(port: int, client: Client) -> None:
    """The life of a client. Call it on a thread."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain, contextlib.suppress(OSError):
        client(plain)


def context(*, trusts: bool = True) -> ssl.SSLContext:
    """A client's TLS."""
    found = ssl.create_default_context()
    if trusts:
        found.load_verify_locations(cadata=authority().issued.certificate)
    return found


# ends of a client


def says(*parts: bytes) -> Client:
    """Sends bytes, reads what is answered to each part, and leaves."""

    def client(plain: socket.socket) -> None:
        for part in parts:
            plain.sendall(part)
            plain.recv(65_536)

    return client


def sends(data: bytes) -> Client:
    """Sends bytes, and leaves without waiting."""
    return lambda plain: plain.sendall(data)


def resets(client: Client) -> Client:
    """The same, with a reset at the end."""

    def then(plain: socket.socket) -> None:
        client(plain)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)

    return then


def half_closes(client: Client) -> Client:
    """The same, but says that it sends no more, and waits for the end."""

    def then(plain: socket.socket) -> None:
        client(plain)
        plain.shutdown(socket.SHUT_WR)
        waits(plain)

    return then


def waits(plain: socket.socket) -> None:
    """Sends nothing more, and reads to the end."""
    while plain.recv(65_536):
        pass


def waits_after(client: Client) -> Client:
    """The same, but lets the other side close."""

    def then(plain: socket.socket) -> None:
        client(plain)
        waits(plain)

    return then


def over_tls(context: ssl.SSLContext, client: Callable[[Any], object]) -> Client:
    """The same in TLS, with a goodbye."""

    def encrypted(plain: socket.socket) -> None:
        with context.wrap_socket(plain, server_hostname="localhost") as secret:
            client(secret)
            secret.close()

    return encrypted


def hello(context: ssl.SSLContext) -> bytes:
    """The first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()
