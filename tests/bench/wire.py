"""A connection of a bench, on asyncio."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, Self

from odradek.client.connection import answer_type
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)

LENGTH = struct.Struct(">i")
HOST = "127.0.0.1"


def frame_of(request: Any, version: int, client_id: str = "bench") -> bytes:
    """A request with its length prefix."""
    header = RequestHeader(request.API_KEY, version, 1, client_id)
    frame = request_header(header, flexible_request_header(request, version)) + encode(request, version)
    return LENGTH.pack(len(frame)) + frame


class Wire:
    """One connection with at most one request in flight."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self.reader, self.writer, self.client_id = reader, writer, client_id

    @classmethod
    async def open(cls, port: int, client_id: str = "bench") -> Self:
        """Connect to a host on this machine."""
        return cls(*await asyncio.open_connection(HOST, port), client_id)

    async def send(self, request: Any, version: int | None = None) -> Any:
        """Send a request and return its response; in the newest version unless one is given."""
        chosen = request.VERSIONS.last if version is None else version
        self.writer.write(frame_of(request, chosen, self.client_id))
        answer = await self.answer()
        _, start = read_response_header(answer, 0, flexible_response_header(request, chosen))
        return decode(answer_type(type(request)), chosen, answer, start)

    async def answer(self) -> bytes:
        """The next response as bytes."""
        (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        return await self.reader.readexactly(length)

    def close(self) -> None:
        """Close without waiting for the peer."""
        self.writer.close()
