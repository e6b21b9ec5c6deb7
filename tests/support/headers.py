"""Reading whole request headers and writing response headers, which the host does inline.

See `odradek.broker.dispatch.routes`.
"""

from __future__ import annotations

import struct

from odradek.wire.errors import Truncated
from odradek.wire.header import RequestHeader, read_client_id
from odradek.wire.types import Buffer

_API = struct.Struct(">hh")
_FIXED = struct.Struct(">hhih")


def peek_api(buffer: Buffer, offset: int = 0) -> tuple[int, int]:
    """API key and version of the request at ``offset``: enough to know whether its header is flexible.

    Raises:
        Truncated: There are fewer than four bytes.
    """
    try:
        key, version = _API.unpack_from(buffer, offset)
    except struct.error as error:
        raise Truncated(f"request header of {len(buffer) - offset} bytes") from error
    return key, version


def read_request_header(buffer: Buffer, offset: int, flexible: bool) -> tuple[RequestHeader, int]:
    """The header at ``offset`` and the offset of the body. Tags are skipped.

    Raises:
        Truncated: The buffer ends inside the header.
        WireError: The client id is not UTF-8, or the tagged section is broken.
    """
    try:
        key, version, correlation_id, size = _FIXED.unpack_from(buffer, offset)
    except struct.error as error:
        raise Truncated(f"request header continues past {len(buffer)} bytes") from error
    client_id, body = read_client_id(buffer, offset + _FIXED.size, size, flexible)
    return RequestHeader(key, version, correlation_id, client_id), body


def response_header(correlation_id: int, flexible: bool) -> bytes:
    """The bytes before a response; see `odradek.wire.header.flexible_response_header`."""
    return struct.pack(">iB", correlation_id, 0) if flexible else struct.pack(">i", correlation_id)
