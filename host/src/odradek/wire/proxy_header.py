"""The header of the PROXY protocol, versions 1 and 2: a load balancer tells who its client is.

After HAProxy's ``proxy-protocol.txt``. A header for anything but TCP is an error: a connection whose client
is not known must not be served with the address of the load balancer.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import crc32c

from odradek.wire.errors import WireError
from odradek.wire.host_address import java_host_address

SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
V1_START: Final = b"PROXY "
V1_MAX_BYTES: Final = 107
"""With the line break."""
V2_FIXED = struct.Struct(">12sBBH")
V2_MAX_BYTES: Final = 4_096
"""The part after the fixed part. The protocol allows 65535; real headers have a few hundred bytes."""
HEADER_MAX_BYTES: Final = V2_FIXED.size + V2_MAX_BYTES
TLV_START = struct.Struct(">BH")

VERSION_2, LOCAL, PROXY = 2, 0, 1
UNSPECIFIED: Final = 0x00
TCP: Final = {0x11: 4, 0x21: 16}
"""Bytes of an address, by the byte of family and transport."""
V1_FAMILIES: Final = {b"TCP4": ipaddress.IPv4Address, b"TCP6": ipaddress.IPv6Address}
CRC32C, UNIQUE_ID = 0x03, 0x05
CRC_BYTES: Final = 4
UNIQUE_ID_MAX_BYTES: Final = 128


class Source(NamedTuple):
    """The client of a load balancer."""

    address: str
    """The address as Java prints it; an IPv4 address inside an IPv6 address is printed as IPv4."""
    port: int


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """A header that was read."""

    size_bytes: int
    """The client's own bytes begin after these."""
    source: Source | None
    """None: the connection has no other client, for example a health check; use the socket's address."""


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """Read the header at the start of a connection.

    Args:
        data: The first bytes of the connection; there may be more than the header.

    Returns:
        The header; None while it is incomplete.

    Raises:
        WireError: The bytes do not begin with a valid header.
    """
    if not data:
        return None
    if data[: len(SIGNATURE)] == SIGNATURE[: len(data)]:
        return read_v2(data)
    if data[: len(V1_START)] == V1_START[: len(data)]:
        return read_v1(data)
    raise WireError("there is no PROXY header")


def read_v1(data: bytes) -> ProxyHeader | None:
    """Read a line of text, like ``PROXY TCP4 10.0.0.5 10.0.0.1 40312 9092``."""
    line, end, _ = data[:V1_MAX_BYTES].partition(b"\r\n")
    if not end:
        if len(data) >= V1_MAX_BYTES:
            raise WireError(f"a PROXY line does not end within {V1_MAX_BYTES} bytes")
        return None
    size_bytes = len(line) + len(end)
    words = line.split(b" ")
    if words[1] == b"UNKNOWN":
        return ProxyHeader(size_bytes, None)
    family = V1_FAMILIES.get(words[1])
    if family is None or len(words) != 6:
        raise WireError("a PROXY line is not of the form PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT")
    try:
        source, _destination = (family(word.decode("ascii")) for word in words[2:4])
    except ValueError as error:
        raise WireError(f"a PROXY line has a bad address: {error}") from error
    if b"%" in line:
        raise WireError("a PROXY line has an address with a scope")
    port, _destination_port = (v1_port(word) for word in words[4:])
    return ProxyHeader(size_bytes, Source(java_host_address(str(source)), port))


def v1_port(word: bytes) -> int:
    """A decimal port without a sign or leading zeros."""
    if not word.isdigit() or str(int(word)).encode() != word or int(word) > 0xFFFF:
        raise WireError(f"a PROXY line has a bad port: {word!r}")
    return int(word)


def read_v2(data: bytes) -> ProxyHeader | None:
    """Read the binary form. What is known to be wrong is refused before the rest has arrived."""
    if len(data) < V2_FIXED.size:
        check_command(data[len(SIGNATURE) :])
        return None
    _signature, command, family, rest_bytes = V2_FIXED.unpack_from(data)
    check_command(data[len(SIGNATURE) : V2_FIXED.size])
    if rest_bytes > V2_MAX_BYTES:
        raise WireError(f"a PROXY header has {rest_bytes} bytes, at most {V2_MAX_BYTES} are read")
    size_bytes = V2_FIXED.size + rest_bytes
    if len(data) < size_bytes:
        return None
    if command & 0x0F == LOCAL or family == UNSPECIFIED:
        return ProxyHeader(size_bytes, None)
    address_bytes = TCP.get(family)
    if address_bytes is None:
        raise WireError(f"a PROXY header is for family and transport 0x{family:02x}, expected TCP")
    addresses_bytes = 2 * address_bytes + 4
    if rest_bytes < addresses_bytes:
        raise WireError(f"a PROXY header has {rest_bytes} bytes of addresses, expected {addresses_bytes}")
    check_tlvs(data[:size_bytes], V2_FIXED.size + addresses_bytes)
    packed = data[V2_FIXED.size :][:address_bytes]
    (port,) = struct.unpack_from(">H", data, V2_FIXED.size + 2 * address_bytes)
    return ProxyHeader(size_bytes, Source(java_host_address(str(ipaddress.ip_address(packed))), port))


def check_command(fixed: bytes) -> None:
    """Check the version and the command, if they have arrived."""
    if fixed and (fixed[0] >> 4 != VERSION_2 or fixed[0] & 0x0F not in (LOCAL, PROXY)):
        raise WireError(f"a PROXY header has version and command 0x{fixed[0]:02x}")


def check_tlvs(header: bytes, start: int) -> None:
    """Check that the TLVs fill the header, and its checksum if there is one."""
    for kind, at, size_bytes in tlvs(header, start):
        if kind == CRC32C:
            check_crc(header, at, size_bytes)
        elif kind == UNIQUE_ID and size_bytes > UNIQUE_ID_MAX_BYTES:
            raise WireError(f"a PROXY header has a unique id of {size_bytes} bytes")


def tlvs(header: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield the type of each TLV, and the position and the size of its value."""
    while at < len(header):
        if at + TLV_START.size > len(header):
            raise WireError("a PROXY header ends inside a TLV")
        kind, size_bytes = TLV_START.unpack_from(header, at)
        at += TLV_START.size
        if at + size_bytes > len(header):
            raise WireError("a PROXY header ends inside a TLV")
        yield kind, at, size_bytes
        at += size_bytes


def check_crc(header: bytes, at: int, size_bytes: int) -> None:
    """Compare the checksum with that of the header in which its own bytes are zero."""
    if size_bytes != CRC_BYTES:
        raise WireError(f"a PROXY header has a checksum of {size_bytes} bytes")
    zeroed = header[:at] + bytes(CRC_BYTES) + header[at + CRC_BYTES :]
    if crc32c.crc32c(zeroed) != int.from_bytes(header[at : at + CRC_BYTES], "big"):
        raise WireError("a PROXY header does not match its checksum")
