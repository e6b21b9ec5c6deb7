"""The two requests of the start-up and memory benches, as bytes, so that no codec is measured."""

from __future__ import annotations

import socket
import struct

API_VERSIONS = 18
GET_TELEMETRY_SUBSCRIPTIONS = 71
CLIENT_ID = b"bench"
NIL_UUID = bytes(16)


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A request with header v2 and its length prefix."""
    header = struct.pack(">hhih", api_key, version, 1, len(CLIENT_ID)) + CLIENT_ID + b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


API_VERSIONS_V3 = frame(API_VERSIONS, 3, compact(b"odradek-bench") + compact(b"1.0") + b"\0")
GET_NEW_INSTANCE = frame(GET_TELEMETRY_SUBSCRIPTIONS, 0, NIL_UUID + b"\0")


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send one request and return its response without the length.

    Raises:
        ConnectionError: The server closed the connection.
    """
    connection.sendall(request)
    (length,) = struct.unpack(">i", exactly(connection, 4))
    return exactly(connection, length)


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return data
