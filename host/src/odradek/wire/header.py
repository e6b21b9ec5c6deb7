"""The headers of requests and responses.

Source: RequestHeader.json and ResponseHeader.json, Kafka 4.3. Flexible versions of an API have request
header 2 and response header 1, other versions 1 and 0. The protocol has two exceptions: the client id has a
two-byte length even in header 2, and ApiVersions has response header 0 in all versions, because a client
reads it before it knows which versions the broker supports.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from odradek.wire.errors import Truncated, WireError
from odradek.wire.types import Buffer, Message
from odradek.wire.utf8 import LENIENT
from odradek.wire.varint import skip_tags

API_VERSIONS_KEY = 18

unpack_correlation_id = struct.Struct(">i").unpack_from
pack_fixed = struct.Struct(">hhih").pack
unpack_client_id_size = struct.Struct(">8xh").unpack_from
FIXED_BYTES = 10
MOST_SHOWN_BYTES = 249
"""Of the client id of a request that may be anything."""


@dataclass(slots=True)
class RequestHeader:
    """The header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    """Both null and empty occur."""


def read_client_id(buffer: Buffer, offset: int, size: int, flexible: bool) -> tuple[str | None, int]:
    """The client id, which follows the four numbers of the header, and the offset of the body. Tags are
    skipped.

    Raises:
        Truncated: The buffer ends inside the header.
        WireError: The tagged section is broken.
    """
    try:
        client_id = None
        if size >= 0:
            start = offset
            offset += size
            if offset > len(buffer):
                raise Truncated(f"need {size} bytes at {start}, have {len(buffer) - start}")
            client_id = str(buffer[start:offset], "utf-8", LENIENT)
        if flexible:
            # Clients send an empty section, which is one zero byte.
            offset = skip_tags(buffer, offset) if buffer[offset] else offset + 1
        return client_id, offset
    except IndexError as error:
        raise Truncated(f"request header continues past {len(buffer)} bytes") from error


def shown_client_id(buffer: Buffer | bytearray, offset: int) -> str | None:
    """The client id of a request that may be no request at all, for a log; None if there is none."""
    start = offset + FIXED_BYTES
    if len(buffer) < start:
        return None
    (size,) = unpack_client_id_size(buffer, offset)
    if not 0 < size <= min(MOST_SHOWN_BYTES, len(buffer) - start):
        return None
    return str(buffer[start : start + size], "utf-8", "replace")


def request_header(header: RequestHeader, flexible: bool) -> bytes:
    """The header of a request as bytes.

    Raises:
        WireError: The client id is too long or cannot be encoded, or a number is out of range.
    """
    try:
        client_id = None if header.client_id is None else header.client_id.encode()
        size = -1 if client_id is None else len(client_id)
        fixed = pack_fixed(header.api_key, header.api_version, header.correlation_id, size)
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(f"request header: {error}") from error
    return fixed + (client_id or b"") + (b"\0" if flexible else b"")


def read_response_header(buffer: Buffer, offset: int, flexible: bool) -> tuple[int, int]:
    """The correlation id at ``offset`` and the offset of the body. Tags are skipped.

    Raises:
        Truncated: The buffer ends inside the header.
        WireError: The tagged section is broken.
    """
    try:
        (correlation_id,) = unpack_correlation_id(buffer, offset)
        offset += 4
        return correlation_id, skip_tags(buffer, offset) if flexible else offset
    except (IndexError, struct.error) as error:
        raise Truncated(f"response header continues past {len(buffer)} bytes") from error


def flexible_request_header(message: type[Message], version: int) -> bool:
    """Whether requests of this version have header 2."""
    return version in message.FLEXIBLE


def flexible_response_header(message: type[Message], version: int) -> bool:
    """Whether responses of this version have header 1; never for ApiVersions."""
    return version in message.FLEXIBLE and message.API_KEY != API_VERSIONS_KEY
