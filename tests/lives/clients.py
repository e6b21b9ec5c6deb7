"""A client on a simulated connection: requests as futures, and a TLS of its own."""

from __future__ import annotations

import asyncio
import ssl
import struct
from typing import Any

from lives.simulated_loop import SimulatedLoop
from lives.wires import End
from odradek.client.connection import answer_type
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest

PATIENCE_S = 120.0
"""A client waits so long for an answer: longer than any long poll or throttle time."""
USER, PASSWORD = "alice", "secret"


class Gone(Exception):
    """The connection has ended."""


class NoAnswer(Exception):
    """The connection is open, and nothing comes."""


class Client(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, loop: SimulatedLoop, name: str, tls: bool = False) -> None:
        self.loop = loop
        self.name = name
        self.number = 0
        self.asked: dict[int, tuple[asyncio.Future[Any], Any, int]] = {}
        self.received = bytearray()
        self.end: End | None = None
        self.lost = loop.create_future()
        self.tls: ssl.SSLObject | None = None
        self.shaken = loop.create_future()
        if tls:
            self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.tls = context.wrap_bio(self.incoming, self.outgoing)

    async def connect(self, port: int) -> None:
        """Connect, with the handshake.

        Raises:
            Gone: Nobody listens, or the handshake fails.
        """
        try:
            await self.loop.create_connection(lambda: self, "127.0.0.1", port)
        except OSError as error:
            raise Gone(str(error)) from None
        if self.tls is not None:
            await self.within(self.shaken)

    async def within(self, future: asyncio.Future[Any]) -> Any:
        """The result, unless the connection is lost before, or the client's patience.

        Raises:
            Gone: There is none.
        """
        await asyncio.wait({future, self.lost}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        if not future.done():
            if not self.lost.done():
                raise NoAnswer
            raise Gone("closed")
        return future.result()

    # the protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, End)
        self.end = transport
        self.shake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end = None
        if not self.lost.done():
            self.lost.set_result(None)

    def eof_received(self) -> bool:
        return False

    def shake(self) -> None:
        """Go on with the handshake."""
        if self.tls is None or self.shaken.done():
            return
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.leave()
        else:
            self.shaken.set_result(None)
        self.flush()

    def flush(self) -> None:
        if self.end is not None and self.outgoing.pending:
            self.end.write(self.outgoing.read())

    def data_received(self, data: bytes) -> None:
        if self.tls is None:
            self.take(data)
            return
        self.incoming.write(data)
        self.shake()
        if self.shaken.done():
            try:
                while plain := self.tls.read(65_536):
                    self.take(plain)
            except ssl.SSLError:
                return

    def take(self, data: bytes) -> None:
        """Read the answers."""
        self.received += data
        while len(self.received) >= 4:
            size = int.from_bytes(self.received[:4], "big")
            if len(self.received) < 4 + size:
                return
            frame = bytes(self.received[4 : 4 + size])
            del self.received[: 4 + size]
            number = int.from_bytes(frame[:4], "big", signed=True)
            if number not in self.asked:
                continue  # the answer to something damaged
            future, kind, version = self.asked.pop(number)
            _, start = read_response_header(frame, 0, flexible_response_header(kind, version))
            future.set_result(decode(answer_type(kind), version, frame, start))

    # what a client does

    def frame(self, request: Any, version: int) -> bytes:
        """A request with its length."""
        self.number += 1
        header = RequestHeader(request.API_KEY, version, self.number, self.name)
        body = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        return struct.pack(">i", len(body)) + body

    def send(self, data: bytes) -> None:
        """Write bytes.

        Raises:
            Gone: The connection has ended.
        """
        if self.end is None:
            raise Gone("closed")
        if self.tls is not None:
            self.tls.write(data)
            self.flush()
        else:
            self.end.write(data)

    def begin(self, request: Any, version: int | None = None) -> asyncio.Future[Any]:
        """Send a request; the future gets its answer."""
        chosen = request.VERSIONS.last if version is None else version
        future = self.loop.create_future()
        frame = self.frame(request, chosen)
        self.asked[self.number] = future, type(request), chosen
        self.send(frame)
        return future

    async def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to a request.

        Raises:
            Gone: There is none.
        """
        return await self.within(self.begin(request, version))

    async def introduce(self) -> None:
        """Send ApiVersions, as every client does first."""
        await self.ask(ApiVersionsRequest(client_software_name="lives", client_software_version="1"), 3)

    async def log_in(self, password: str = PASSWORD) -> bool:
        """Authenticate, or do so again; whether it succeeded."""
        if (await self.ask(SaslHandshakeRequest(mechanism="PLAIN"))).error_code:
            return False
        token = b"\0".join([b"", USER.encode(), password.encode()])
        return not (await self.ask(SaslAuthenticateRequest(auth_bytes=token))).error_code

    def leave(self) -> None:
        """Close."""
        if self.end is not None:
            self.end.close()

    def part(self, how: str) -> None:
        """End the connection in one of several ways."""
        if self.end is None:
            return
        if how == "half-close":
            self.end.write_eof()
            self.loop.call_later(self.loop.chance.choice((0.0, 1.0, 40.0)), self.leave)
        elif how == "abort":
            self.end.abort()
        elif how == "cut":
            self.end.cut()
        elif how == "half a frame":
            self.end.write(self.frame(ApiVersionsRequest(), 0)[:-3])
            self.leave()
        elif how == "never reads":
            self.end.pause_reading()
            self.loop.call_later(60.0, self.leave)
        else:
            self.leave()


WAYS_TO_PART = ("close", "close", "half-close", "abort", "cut", "half a frame", "never reads")
