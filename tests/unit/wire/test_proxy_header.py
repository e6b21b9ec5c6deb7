"""The PROXY protocol: both versions, byte by byte, and everything that must be refused."""

from __future__ import annotations

import ipaddress
import struct

import crc32c
import pytest

from odradek.wire.errors import WireError
from odradek.wire.proxy_header import SIGNATURE, ProxyHeader, Source, read_proxy_header

CLIENT = "10.0.0.5"
HERE = "10.0.0.1"
KAFKA = bytes.fromhex("0000 0010 0012 0003 0000 0001 ffff 0000")
"""The beginning of a request."""


def v2(
    source: str = CLIENT,
    destination: str = HERE,
    *,
    first: int = 0x21,
    family: int | None = None,
    tlvs: bytes = b"",
    size: int | None = None,
) -> bytes:
    """A header in binary form, with the client's port 40312."""
    addresses = [ipaddress.ip_address(each) for each in (source, destination)]
    if family is None:
        family = 0x11 if addresses[0].version == 4 else 0x21
    rest = b"".join(each.packed for each in addresses) + struct.pack(">HH", 40312, 9092) + tlvs
    return SIGNATURE + struct.pack(">BBH", first, family, len(rest) if size is None else size) + rest


def tlv(kind: int, value: bytes) -> bytes:
    return struct.pack(">BH", kind, len(value)) + value


def with_crc(header: bytes, wrong: int = 0) -> bytes:
    """The header, whose last four bytes are zero, with its checksum there."""
    return header[:-4] + struct.pack(">I", crc32c.crc32c(header) ^ wrong)


LONG_ADDRESS = b"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
V1_LONGEST = b"PROXY UNKNOWN %s %s 65535 65535\r\n" % (LONG_ADDRESS, LONG_ADDRESS)
WITH_CRC = with_crc(v2(tlvs=tlv(0x02, b"example.com") + tlv(0x03, bytes(4))))
EVERY_TLV = v2(
    tlvs=tlv(0x01, b"kafka")
    + tlv(0x02, b"example.com")
    + tlv(0x04, b"")
    + tlv(0x05, bytes(128))
    + tlv(0x20, b"\x01\0\0\0\0" + tlv(0x21, b"TLSv1.3") + tlv(0x22, b"CN=bob"))
    + tlv(0x30, b"ns")
    + tlv(0xE0, b"custom")
    + tlv(0x7F, b"not known")
)


@pytest.mark.parametrize(
    ("header", "source"),
    [
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 40312 9092\r\n", Source("10.0.0.5", 40312)),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 0 65535\r\n", Source("10.0.0.5", 0)),
        (b"PROXY TCP6 2001:db8::5 ::1 40312 9092\r\n", Source("2001:db8:0:0:0:0:0:5", 40312)),
        (b"PROXY TCP6 ::ffff:10.0.0.5 ::1 40312 9092\r\n", Source("10.0.0.5", 40312)),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN whatever follows\r\n", None),
        (V1_LONGEST, None),
        (v2(), Source(CLIENT, 40312)),
        (v2("2001:db8::5", "::1"), Source("2001:db8:0:0:0:0:0:5", 40312)),
        (v2("::ffff:10.0.0.5", "::1"), Source(CLIENT, 40312)),
        (EVERY_TLV, Source(CLIENT, 40312)),
        (WITH_CRC, Source(CLIENT, 40312)),
        (v2(first=0x20), None),
        (SIGNATURE + b"\x20\x00\0\0", None),
        (SIGNATURE + b"\x21\x00\0\x05abcde", None),
    ],
)
def test_a_header_is_read(header: bytes, source: Source | None) -> None:
    expected = ProxyHeader(len(header), source)

    partial = {read_proxy_header(header[:end]) for end in range(len(header))}

    assert partial == {None}
    assert read_proxy_header(header) == expected
    assert read_proxy_header(header + KAFKA) == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (KAFKA, "no PROXY header"),
        (bytes.fromhex("16030100"), "no PROXY header"),
        (b"PROXX", "no PROXY header"),
        (b"\r\n\r\n\0\r\nQUIX", "no PROXY header"),
        (V1_LONGEST[:-2] + b"5\r\n", "within 107"),
        (b"PROXY TCP4 " + b"1" * 96, "within 107"),
        (b"PROXY UDP4 10.0.0.5 10.0.0.1 1 2\r\n", "form"),
        (b"PROXY TCP4\r\n", "form"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 1\r\n", "form"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 1 2 \r\n", "form"),
        (b"PROXY TCP4  10.0.0.5 10.0.0.1 1 2\r\n", "form"),
        (b"PROXY  TCP4 10.0.0.5 10.0.0.1 1 2\r\n", "form"),
        (b"PROXY tcp4 10.0.0.5 10.0.0.1 1 2\r\n", "form"),
        (b"PROXY TCP4 10.0.0.05 10.0.0.1 1 2\r\n", "bad address"),
        (b"PROXY TCP4 10.0.5 10.0.0.1 1 2\r\n", "bad address"),
        (b"PROXY TCP4 10.0.0.5 host 1 2\r\n", "bad address"),
        (b"PROXY TCP4 ::1 ::1 1 2\r\n", "bad address"),
        (b"PROXY TCP6 10.0.0.5 ::1 1 2\r\n", "bad address"),
        (b"PROXY TCP4 \xff ::1 1 2\r\n", "bad address"),
        (b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", "scope"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 01 2\r\n", "bad port"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 +1 2\r\n", "bad port"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 -1 2\r\n", "bad port"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 65536 2\r\n", "bad port"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 1 65536\r\n", "bad port"),
        (b"PROXY TCP4 10.0.0.5 10.0.0.1 1 x\r\n", "bad port"),
        (SIGNATURE + b"\x11", "version and command 0x11"),
        (v2(first=0x11), "version and command 0x11"),
        (v2(first=0x22), "version and command 0x22"),
        (v2(size=11)[: 16 + 11], "11 bytes of addresses"),
        (v2("::1", "::1", size=35)[: 16 + 35], "35 bytes of addresses"),
        (v2(family=0x12), "0x12"),
        (v2("::1", "::1", family=0x22), "0x22"),
        (SIGNATURE + b"\x21\x31" + struct.pack(">H", 216) + bytes(216), "0x31"),
        (SIGNATURE + b"\x21\x32" + struct.pack(">H", 216) + bytes(216), "0x32"),
        (v2(family=0x41), "0x41"),
        (SIGNATURE + b"\x21\x11" + struct.pack(">H", 4097), "at most 4096"),
        (v2(tlvs=b"\x04"), "inside a TLV"),
        (v2(tlvs=b"\x04\0"), "inside a TLV"),
        (v2(tlvs=b"\x04\0\x02a"), "inside a TLV"),
        (v2(tlvs=tlv(0x05, bytes(129))), "unique id"),
        (v2(tlvs=tlv(0x03, bytes(3))), "checksum of 3 bytes"),
        (with_crc(v2(tlvs=tlv(0x03, bytes(4))), wrong=1), "does not match"),
    ],
)
def test_other_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(WireError, match=problem):
        read_proxy_header(data)


def test_the_largest_header_is_read() -> None:
    header = v2(tlvs=tlv(0x04, bytes(4096 - 12 - 3)))

    found = read_proxy_header(header)

    assert found == ProxyHeader(16 + 4096, Source(CLIENT, 40312))


def test_the_longest_line_has_107_bytes() -> None:
    assert len(V1_LONGEST) == 107
