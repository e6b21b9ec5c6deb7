"""Headers in front of requests and responses.

Source: RequestHeader.json and ResponseHeader.json, Kafka 4.3. Flexible versions of an API have request
header 2 and response header 1, others 1 and 0. Two oddities are Kafka's: the client id has a legacy
length even in header 2, and ApiVersions has response header 0 in all versions, since a client reads it
before it knows what the broker speaks.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from odradek.wire.errors import Truncated, WireError
from odradek.wire.types import Buffer, Message
from odradek.wire.varint import skip_tags

API_VERSIONS_KEY = 18

unpack_api = struct.Struct(">hh").unpack_from
unpack_fixed = struct.Struct(">hhih").unpack_from
FIXED_BYTES = 10
unpack_correlation_id = struct.Struct(">i").unpack_from
pack_plain = struct.Struct(">i").pack
pack_flexible = struct.Struct(">iB").pack
pack_fixed = struct.Struct(">hhih").pack


@dataclass(slots=True)
class RequestHeader:
    """What a request says of itself."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None
    """Null and empty are different to Kafka's quotas; both occur."""


def peek_api(buffer: Buffer, offset: int = 0) -> tuple[int, int]:
    """API key and version of the request at ``offset``: enough to know whether its header is flexible.

    Raises:
        Truncated: There are fewer than four bytes.
    """
    try:
        key, version = unpack_api(buffer, offset)
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
        key, version, correlation_id, size = unpack_fixed(buffer, offset)
    except struct.error as error:
        raise Truncated(f"request header goes on behind {len(buffer)} bytes") from error
    client_id, body = read_client_id(buffer, offset + FIXED_BYTES, size, flexible)
    return RequestHeader(key, version, correlation_id, client_id), body


def read_client_id(buffer: Buffer, offset: int, size: int, flexible: bool) -> tuple[str | None, int]:
    """The rest of a request header behind its four numbers, and the offset of the body. Tags are skipped.

    Raises:
        Truncated: The buffer ends inside the header.
        WireError: The client id is not UTF-8, or the tagged section is broken.
    """
    try:
        client_id = None
        if size >= 0:
            start = offset
            offset += size
            if offset > len(buffer):
                raise Truncated(f"need {size} bytes at {start}, have {len(buffer) - start}")
            client_id = str(buffer[start:offset], "utf-8")
        if flexible:
            # Clients send an empty section, which is one zero byte.
            offset = skip_tags(buffer, offset) if buffer[offset] else offset + 1
        return client_id, offset
    except IndexError as error:
        raise Truncated(f"request header goes on behind {len(buffer)} bytes") from error
    except UnicodeDecodeError as error:
        raise WireError(f"client id: {error}") from error


def request_header(header: RequestHeader, flexible: bool) -> bytes:
    """The bytes in front of a request.

    Raises:
        WireError: The client id is too long or no text, or a number is out of range.
    """
    try:
        client_id = None if header.client_id is None else header.client_id.encode()
        size = -1 if client_id is None else len(client_id)
        fixed = pack_fixed(header.api_key, header.api_version, header.correlation_id, size)
    except (struct.error, UnicodeEncodeError) as error:
        raise WireError(f"request header: {error}") from error
    return fixed + (client_id or b"") + (b"\0" if flexible else b"")


def response_header(correlation_id: int, flexible: bool) -> bytes:
    """The bytes in front of a response; see `flexible_response_header`."""
    return pack_flexible(correlation_id, 0) if flexible else pack_plain(correlation_id)


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
        raise Truncated(f"response header goes on behind {len(buffer)} bytes") from error


def flexible_request_header(message: type[Message], version: int) -> bool:
    """True if requests of that version have header 2."""
    return version in message.FLEXIBLE


def flexible_response_header(message: type[Message], version: int) -> bool:
    """True if responses of that version have header 1; never for ApiVersions."""
    return version in message.FLEXIBLE and message.API_KEY != API_VERSIONS_KEY
