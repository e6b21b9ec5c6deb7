"""Connections to a TLS listener of a plugin, before their handshakes are done."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.endpoints.shares import Shares
from odradek.endpoints.tls_entrance import NoTlsLoop, TlsEntrance, check_loop

HANDSHAKE_S = 10.0
opened: list[socket.socket] = []


@pytest.fixture(autouse=True)
def close_sockets() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


class Loop:
    """A loop that is not asyncio's, with handshakes that end when a test says so."""

    def __init__(self) -> None:
        self.handshakes: list[asyncio.Future[Any]] = []

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(work)

    async def connect_accepted_socket(self, factory: Any, connection: Any, **options: Any) -> Any:
        assert options["ssl_handshake_timeout"] == HANDSHAKE_S
        handshake: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.handshakes.append(handshake)
        with connection:
            factory().connection_made(await handshake)


class Connection:
    """The protocol of the application."""

    def __init__(self) -> None:
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport


class Transport:
    """Remembers what was done to it."""

    def __init__(self, address: str = "192.0.2.1") -> None:
        self.address = address
        self.protocol: Any = None
        self.is_aborted = False
        self.socket, self.client = socket.socketpair()
        opened.extend((self.socket, self.client))

    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self.address, 5000), "socket": self.socket}[name]

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def abort(self) -> None:
        self.is_aborted = True
        self.socket.close()

    def is_open(self) -> bool:
        """Whether the client sees no end."""
        self.client.setblocking(False)
        try:
            return bool(self.client.recv(1))
        except BlockingIOError:
            return True


class Entrance(TlsEntrance):
    """An entrance with a share for each address."""

    def __init__(self, share: int = 1) -> None:
        self.here = Loop()
        self.shares = Shares(share)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        super().__init__(tls, HANDSHAKE_S, self.here, Connection, self.shares.take, self.shares.give_back)

    async def begun(self, address: str = "192.0.2.1") -> Transport:
        """A connection that begins its handshake, if it may."""
        transport = Transport(address)
        self.accept().connection_made(transport)
        await asyncio.sleep(0)
        return transport

    async def end(self, found: Any) -> None:
        """End the handshake that has begun last."""
        handshake = self.here.handshakes[-1]
        if isinstance(found, Exception):
            handshake.set_exception(found)
        else:
            handshake.set_result(found)
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="asyncio of this Python leaves nothing")
def test_a_loop_that_keeps_failed_handshakes_is_refused() -> None:
    with asyncio.Runner() as runner, pytest.raises(NoTlsLoop, match=r"uvloop .* or Python 3\.13"):
        check_loop(runner.get_loop())


def test_the_application_has_a_connection_after_its_handshake() -> None:
    async def life() -> None:
        entrance, secure = Entrance(), Transport()
        await entrance.begun()
        waiting = (len(entrance), dict(entrance.shares.held))

        await entrance.end(secure)

        assert waiting == (1, {"192.0.2.1": 1})
        assert secure.protocol.transport is secure
        assert (len(entrance), entrance.shares.held) == (0, {})

    asyncio.run(life())


@pytest.mark.parametrize("error", [ssl.SSLError("bad"), ConnectionResetError(), TimeoutError()])
def test_a_handshake_that_fails_gives_its_place_back(error: Exception) -> None:
    async def life() -> None:
        entrance = Entrance()
        transport = await entrance.begun()

        await entrance.end(error)

        assert not transport.is_open()
        assert (len(entrance), entrance.shares.held) == (0, {})

    asyncio.run(life())


def test_handshakes_that_are_not_done_are_in_the_share_of_their_address() -> None:
    async def life() -> None:
        entrance = Entrance()
        first, second = await entrance.begun(), await entrance.begun()
        other = await entrance.begun("192.0.2.2")

        assert [each.is_open() for each in (first, second, other)] == [True, False, True]
        assert len(entrance) == len(entrance.here.handshakes) == 2

    asyncio.run(life())


def test_a_connection_without_a_descriptor_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    async def life() -> None:
        entrance = Entrance()
        with monkeypatch.context() as patch:
            patch.setattr(os, "dup", full)
            transport = await entrance.begun()

        assert not transport.is_open()
        assert (len(entrance), entrance.shares.held) == (0, {})

    asyncio.run(life())


def test_a_listener_that_stops_ends_its_handshakes() -> None:
    async def life() -> None:
        entrance = Entrance()
        transport = await entrance.begun()

        entrance.close()
        for _ in range(3):
            await asyncio.sleep(0)

        assert not transport.is_open()
        assert (len(entrance), entrance.shares.held) == (0, {})

    asyncio.run(life())
