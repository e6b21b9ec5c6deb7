"""The parts of requests that the gateway reads."""

from __future__ import annotations

import struct
from collections.abc import Callable

from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.wire.errors import WireError
from odradek.wire.header import API_VERSIONS_KEY
from odradek.wire.types import Buffer
from odradek.wire.utf8 import LENIENT
from odradek.wire.varint import read_varint

HEAD_BYTES = 12
"""Length, API key, version and correlation id."""
SMALLEST_FRAME = 8
MOST_HEADER_TAGS = 64
HIGHEST_KEY, HIGHEST_VERSION = 1000, 100
"""A first request beyond these is no request: today's are 94 and 18. ApiVersions has any version: it asks
which ones there are.
"""
TLS_RECORD = 0x1603
HTTP = {b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"CONN"}

Head = tuple[int, int, int, int]
"""Length, API key, version and correlation id."""

unpack_head: Callable[..., Head] = struct.Struct(">ihhi").unpack_from
unpack_int16: Callable[..., tuple[int]] = struct.Struct(">h").unpack_from
unpack_int32: Callable[..., tuple[int]] = struct.Struct(">i").unpack_from


def bad_length(size: int, most: int) -> PairFailure:
    """The failure of a request with an impossible length."""
    if size >> 16 == TLS_RECORD:
        why = "the client speaks TLS on a listener without TLS"
    elif size.to_bytes(4, signed=True) in HTTP:
        why = "the client speaks HTTP"
    else:
        why = f"a request of {size} bytes, the limit is {most}"
    return PairFailure(Cause.BAD_REQUEST, why)


def starts_well(data: bytes | bytearray, most: int) -> bool:
    """Whether the first bytes of a client are the head of a request; False if more bytes are needed.

    Raises:
        PairFailure: They are something else.
    """
    if len(data) >= 4:
        (size,) = unpack_int32(data)
        if not SMALLEST_FRAME <= size <= most:
            raise bad_length(size, most)
    if len(data) < HEAD_BYTES:
        return False
    _, key, version, _ = unpack_head(data)
    if key != API_VERSIONS_KEY and not (0 <= key <= HIGHEST_KEY and 0 <= version <= HIGHEST_VERSION):
        raise PairFailure(Cause.BAD_REQUEST, f"no request has API key {key} and version {version}")
    return True


def client_id_end(data: Buffer, pos: int) -> int:
    """Return the offset after the client id of the frame at `pos`; more than `len(data)` if it is cut.

    The caller has at least the 12 bytes of the head.
    """
    if len(data) < pos + 14:
        return pos + 14
    (size,) = unpack_int16(data, pos + 12)
    return pos + 14 + max(size, 0)


def client_id(data: bytes, pos: int) -> str:
    """Return the client id of the frame at `pos`, which has to hold it; empty for null."""
    return data[pos + 14 : client_id_end(data, pos)].decode("utf-8", LENIENT)


def after_tags(data: Buffer, at: int) -> int:
    """Return the offset after a section of tags.

    Returns:
        If the section is cut, an offset beyond `len(data)`: at least that much is needed.

    Raises:
        PairFailure: There are more tags than any client sends, or a number is no varint.
    """
    try:
        count, at = read_varint(data, at)
        if count > MOST_HEADER_TAGS:
            raise PairFailure(Cause.BAD_REQUEST, f"{count} tags in the header of a request")
        for _ in range(count):
            _, at = read_varint(data, at)
            size, at = read_varint(data, at)
            at += size
    except IndexError:
        return max(at, len(data)) + 1
    except WireError as error:
        raise PairFailure(Cause.BAD_REQUEST, str(error)) from None
    return at
