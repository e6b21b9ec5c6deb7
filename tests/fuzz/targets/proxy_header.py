"""PROXY headers: nothing but a header or a `WireError`, the same however the bytes arrive."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from odradek.wire.errors import WireError
from odradek.wire.host_address import java_host_address
from odradek.wire.proxy_header import HEADER_MAX_BYTES, SIGNATURE, ProxyHeader, read_proxy_header


def seeds() -> Iterator[bytes]:
    """Both versions, both families, and TLVs with a checksum."""
    yield b"PROXY TCP4 10.0.0.5 10.0.0.1 40312 9092\r\nrest"
    yield b"PROXY TCP6 2001:db8::5 ::ffff:10.0.0.1 40312 9092\r\n"
    yield b"PROXY UNKNOWN\r\n"
    for command, family, size in ((0x20, 0, 0), (0x21, 0x11, 12), (0x21, 0x21, 36), (0x21, 0x31, 216)):
        yield SIGNATURE + struct.pack(">BBH", command, family, size) + bytes(size)
    for kind, value in ((0x03, bytes(4)), (0x05, bytes(16)), (0x20, bytes(5) + b"\x21\0\1a")):
        tlv = struct.pack(">BH", kind, len(value)) + value
        yield SIGNATURE + struct.pack(">BBH", 0x21, 0x11, 12 + len(tlv)) + bytes(12) + tlv


def outcome(data: bytes) -> ProxyHeader | str | None:
    """The header, None for an incomplete one, or the error."""
    try:
        return read_proxy_header(data)
    except WireError:
        return "refused"


def check(data: bytes) -> None:
    """Read the header; bytes after it must not matter, and no part of it may be taken for another."""
    found = outcome(data)
    if found is None:
        assert len(data) < HEADER_MAX_BYTES
        return
    if isinstance(found, ProxyHeader):
        assert outcome(data[: found.size_bytes]) == found
        assert outcome(data[: found.size_bytes - 1]) is None
        if found.source is not None:
            assert java_host_address(found.source.address) == found.source.address
            assert 0 <= found.source.port <= 0xFFFF
    else:
        assert outcome(data + b"\0") == found
