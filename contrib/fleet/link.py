"""One connection of the generator, with the requests of one or more clients."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

from odradek.client.address import Address
from odradek.client.connection import answer_type
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

LENGTH = struct.Struct(">i")
CORRELATION = struct.Struct(">i")
API_VERSIONS = 3
"""The version of ApiVersions that all brokers with telemetry answer."""
PORTS = 25_000
"""Connections from one address of the loopback network; above that the ports run out."""
BIND_ADDRESS_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT of Linux: the port is chosen when the socket connects, which is much faster."""
Answered = Callable[[Any], None]
"""Takes a response; None if the connection was lost."""


async def dialed(broker: Address, number: int) -> socket.socket:
    """A connection from one of several addresses of the loopback network."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        made.bind((f"127.0.0.{2 + number // PORTS}", 0))
        await asyncio.get_running_loop().sock_connect(made, (broker.host, broker.port))
    except BaseException:
        made.close()
        raise
    return made


class Link(asyncio.Protocol):
    """Sends requests of version 0 and matches responses. The first request is ApiVersions.

    Args:
        software: Name and version of the client library.
        ready: Called with the answer to ApiVersions.
        lost: Called when the connection ends, after the outstanding requests were told.
    """

    def __init__(
        self,
        software: tuple[str, str],
        ready: Callable[[Link, ApiVersionsResponse], None],
        lost: Callable[[], None],
    ) -> None:
        self.software, self.ready, self.lost = software, ready, lost
        self.transport: asyncio.Transport | None = None
        self.waiting: dict[int, tuple[Any, int, Answered]] = {}
        self.rest = b""
        self.correlation_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        name, version = self.software
        hello = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        self.send(hello, name, self.introduced, API_VERSIONS)

    def introduced(self, response: ApiVersionsResponse | None) -> None:
        if response is not None:
            self.ready(self, response)

    def send(self, request: Any, client_id: str, answered: Answered, version: int = 0) -> None:
        """Send a request; ``answered`` is called once."""
        assert self.transport is not None
        self.correlation_id = self.correlation_id + 1 & 0x7FFFFFFF
        header = RequestHeader(request.API_KEY, version, self.correlation_id, client_id)
        body = encode(request, version)
        frame = request_header(header, flexible_request_header(request, version)) + body
        self.waiting[self.correlation_id] = (type(request), version, answered)
        self.transport.write(LENGTH.pack(len(frame)) + frame)

    def data_received(self, data: bytes) -> None:
        data = self.rest + data if self.rest else data
        at = 0
        while len(data) - at >= LENGTH.size:
            (size,) = LENGTH.unpack_from(data, at)
            if len(data) - at - LENGTH.size < size:
                break
            at += LENGTH.size
            self.take(data[at : at + size])
            at += size
        self.rest = data[at:]

    def take(self, frame: bytes) -> None:
        (correlation_id,) = CORRELATION.unpack_from(frame)
        kind, version, answered = self.waiting.pop(correlation_id)
        _, start = read_response_header(frame, 0, flexible_response_header(kind, version))
        answered(decode(answer_type(kind), version, frame, start))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        outstanding = [answered for _, _, answered in self.waiting.values()]
        self.waiting.clear()
        for answered in outstanding:
            answered(None)
        self.lost()

    def close(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()
