"""Compressed bodies of record batches in every form that an encoder, or nobody, would write."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

import lz4.frame
import snappy
import zstandard

from odradek.wire.compression import Codec

XERIAL: Final = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
SKIPPABLE: Final = struct.pack("<II", 0x184D2A5A, 4) + b"skip"
LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
TAILS: Final = (b"\0", b"garbage after the end", bytes(40))


class Body(NamedTuple):
    """The compressed records of a batch."""

    label: str
    codec: Codec
    data: bytes


def bodies(content: bytes, chance: Random, mutations: int) -> list[Body]:
    """Every form of the content, whole, cut, with bytes behind it, and changed at random."""
    found = [*gzips(content), *snappies(content), *lz4s(content), *zstds(content)]
    for label, codec, data in list(found):
        found += [Body(f"{label} and {tail!r}", codec, data + tail) for tail in TAILS]
        found += [Body(f"{label} twice", codec, data + data)] if "whole" in label else []
        for cut in {len(data) - 1, len(data) - 4, len(data) - 8, chance.randrange(len(data)), 0}:
            found.append(Body(f"{label} cut at {cut}", codec, data[: max(cut, 0)]))
        for number in range(mutations):
            found.append(Body(f"{label} changed {number}", codec, changed(data, chance)))
    return found


def changed(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(min(len(data), chance.choice((12, len(data)))))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def halves(content: bytes) -> tuple[bytes, bytes]:
    middle = len(content) // 2
    return content[:middle], content[middle:]


def gzips(content: bytes) -> Iterator[Body]:
    first, second = halves(content)

    def member(data: bytes, flags: int = 0, fields: bytes = b"") -> bytes:
        raw = zlib.compressobj(wbits=-15)
        body = raw.compress(data) + raw.flush()
        head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + fields
        return head + body + struct.pack("<II", zlib.crc32(data), len(data))

    checked = b"\x1f\x8b\x08\x02" + bytes(6)
    check = struct.pack("<H", zlib.crc32(checked) & 0xFFFF)
    for label, data in (
        ("whole", gzip.compress(content)),
        ("two members", member(first) + member(second)),
        ("an empty member first", member(b"") + member(content)),
        ("an empty member last", member(content) + member(b"")),
        ("many members", b"".join(member(bytes([each])) for each in content)),
        ("a name and a comment", member(content, 0x18, b"name\0comment\0")),
        ("an extra field", member(content, 0x04, b"\3\0abc")),
        ("a checked header", member(content, 0x02, check)),
        ("a header with a wrong check", member(content, 0x02, b"\0\0")),
        ("reserved flags", member(content, 0xE0)),
        ("nothing", member(b"")),
        ("stored blocks", zlib.compress(content, 0, 31)),
        ("a wrong check", gzip.compress(content)[:-8] + bytes(4) + struct.pack("<I", len(content))),
        ("a wrong size", gzip.compress(content)[:-4] + bytes(4)),
        ("zlib", zlib.compress(content)),
    ):
        yield Body(f"gzip {label}", Codec.GZIP, data)


def xerial(*blocks: bytes, head: bytes = XERIAL) -> bytes:
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def snappies(content: bytes) -> Iterator[Body]:
    first, second = halves(content)
    packed = snappy.compress(content)
    parts = snappy.compress(first), snappy.compress(second)
    nothing = snappy.compress(b"")
    for label, data in (
        ("raw whole", packed),
        ("xerial whole", xerial(packed)),
        ("xerial of two blocks", xerial(*parts)),
        ("xerial of many blocks", xerial(*(snappy.compress(bytes([each])) for each in content))),
        ("xerial with an empty block", xerial(nothing, packed, nothing)),
        ("xerial with a block of 0 bytes", xerial(b"", packed)),
        ("xerial without blocks", xerial()),
        ("xerial of version 2", xerial(packed, head=XERIAL[:8] + struct.pack(">ii", 2, 1))),
        ("xerial of version 0", xerial(packed, head=XERIAL[:8] + struct.pack(">ii", 0, 0))),
        ("xerial that needs version 2", xerial(packed, head=XERIAL[:8] + struct.pack(">ii", 2, 2))),
        ("xerial twice", xerial(parts[0]) + xerial(parts[1])),
        ("xerial with a negative block", XERIAL + struct.pack(">i", -1) + packed),
        ("raw in two", parts[0] + parts[1]),
        ("raw nothing", nothing),
    ):
        yield Body(f"snappy {label}", Codec.SNAPPY, data)


def xxh32(data: bytes) -> int:
    """The hash of less than 16 bytes."""
    primes = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
    whole = len(data) // 4
    found = primes[4] + len(data)
    for (word,) in struct.iter_unpack("<I", data[: 4 * whole]):
        found = rotated(found + word * primes[2], 17) * primes[3]
    for byte in data[4 * whole :]:
        found = rotated(found + byte * primes[4], 11) * primes[0]
    for shift, prime in ((15, primes[1]), (13, primes[2]), (16, 1)):
        found &= 0xFFFFFFFF
        found = (found ^ found >> shift) * prime
    return found


def rotated(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return value << bits | value >> 32 - bits


def lz4_head(flags: int, block: int, fields: bytes = b"", right: bool = True) -> bytes:
    head = bytes([flags, block]) + fields
    check = xxh32(head) >> 8 & 0xFF
    return LZ4_MAGIC + head + bytes([check if right else check ^ 1])


def lz4s(content: bytes) -> Iterator[Body]:
    first, second = halves(content)
    block = struct.pack("<I", 1 << 31 | len(content)) + content
    end = bytes(4)
    large = content * 3000

    def frame(data: bytes, **options: bool) -> bytes:
        options = {"block_linked": False, "store_size": False} | options
        return bytes(lz4.frame.compress(data, **options))

    for label, data in (
        ("whole", frame(content)),
        ("linked", frame(content, block_linked=True)),
        ("linked large", frame(large, block_linked=True)),
        ("checked", frame(content, content_checksum=True)),
        ("checked blocks", frame(content, block_checksum=True)),
        ("sized", frame(content, store_size=True)),
        ("with everything", frame(content, content_checksum=True, block_checksum=True, store_size=True)),
        ("two frames", frame(first) + frame(second)),
        ("an empty frame first", frame(b"") + frame(content)),
        ("an empty frame last", frame(content) + frame(b"")),
        ("nothing", frame(b"")),
        ("a skippable frame first", SKIPPABLE + frame(content)),
        ("a skippable frame last", frame(content) + SKIPPABLE),
        ("by hand", lz4_head(0x60, 0x40) + block + end),
        ("blocks of 256 kB", lz4_head(0x60, 0x50) + block + end),
        ("blocks of 4 MB", lz4_head(0x60, 0x70) + block + end),
        ("blocks of size 3", lz4_head(0x60, 0x30) + block + end),
        ("a dictionary", lz4_head(0x61, 0x40, b"abcd") + block + end),
        ("a reserved flag", lz4_head(0x62, 0x40) + block + end),
        ("a reserved bit", lz4_head(0x60, 0xC0) + block + end),
        ("another reserved bit", lz4_head(0x60, 0x41) + block + end),
        ("version 0", lz4_head(0x20, 0x40) + block + end),
        ("version 3", lz4_head(0xE0, 0x40) + block + end),
        ("a wrong header check", lz4_head(0x60, 0x40, right=False) + block + end),
        ("a wrong size", lz4_head(0x68, 0x40, struct.pack("<Q", 7)) + block + end),
        ("without an end", lz4_head(0x60, 0x40) + block),
        ("an empty stored block", lz4_head(0x60, 0x40) + struct.pack("<I", 1 << 31) + block + end),
        (
            "two blocks",
            lz4_head(0x60, 0x40)
            + b"".join(struct.pack("<I", 1 << 31 | len(part)) + part for part in (first, second))
            + end,
        ),
        ("a large block", lz4_head(0x60, 0x40) + struct.pack("<I", 1 << 31 | 70_000) + bytes(70_000) + end),
        (
            "the old check of the header",
            LZ4_MAGIC + b"\x60\x40" + bytes([xxh32(LZ4_MAGIC + b"\x60\x40") >> 8 & 0xFF]) + block + end,
        ),
    ):
        yield Body(f"lz4 {label}", Codec.LZ4, data)


def zstds(content: bytes) -> Iterator[Body]:
    first, second = halves(content)

    def frame(data: bytes, *, write_checksum: bool = False) -> bytes:
        return zstandard.ZstdCompressor(write_checksum=write_checksum).compress(data)

    def streamed(data: bytes, window_log: int = 17, checked: bool = False) -> bytes:
        parameters = zstandard.ZstdCompressionParameters(
            window_log=window_log, write_content_size=False, write_checksum=checked
        )
        stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        return stream.compress(data) + stream.flush()

    def by_hand(descriptor: int, fields: bytes, *blocks: tuple[int, bytes]) -> bytes:
        out = struct.pack("<I", 0xFD2FB528) + bytes([descriptor]) + fields
        for number, (kind, data) in enumerate(blocks):
            head = (number == len(blocks) - 1) | kind << 1 | len(data) << 3
            out += head.to_bytes(3, "little") + data
        return out

    size, window = bytes([len(content)]), b"\x58"
    dictionary = zstandard.ZstdCompressionDict(content * 40, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    for label, data in (
        ("whole", frame(content)),
        ("checked", frame(content, write_checksum=True)),
        ("streamed", streamed(content)),
        ("streamed and checked", streamed(content, checked=True)),
        ("two frames", frame(first) + frame(second)),
        ("many frames", b"".join(frame(bytes([each])) for each in content)),
        ("an empty frame first", frame(b"") + frame(content)),
        ("an empty frame last", frame(content) + frame(b"")),
        ("nothing", frame(b"")),
        ("a skippable frame first", SKIPPABLE + frame(content)),
        ("a skippable frame last", frame(content) + SKIPPABLE),
        ("a skippable frame alone", SKIPPABLE),
        ("by hand", by_hand(0x20, size, (0, content))),
        ("a dictionary id", by_hand(0x21, b"\7" + size, (0, content))),
        ("a dictionary id of 0", by_hand(0x21, b"\0" + size, (0, content))),
        ("a dictionary", zstandard.ZstdCompressor(dict_data=dictionary).compress(content)),
        ("a wrong size", by_hand(0x20, b"\7", (0, content))),
        ("a size of 0", by_hand(0x20, b"\0", (0, content))),
        ("a size of 0 and nothing", by_hand(0x20, b"\0", (0, b""))),
        ("a reserved bit", by_hand(0x28, size, (0, content))),
        ("an unused bit", by_hand(0x30, size, (0, content))),
        ("a reserved block", by_hand(0x20, size, (3, content))),
        ("empty blocks", by_hand(0x20, size, (0, b""), (0, content), (0, b""))),
        ("a window", by_hand(0x00, window, (0, content))),
        ("a window of 8 MB", by_hand(0x00, b"\x68", (0, content))),
        ("a window of 128 MB", by_hand(0x00, b"\x88", (0, content))),
        ("a window of more than 128 MB", by_hand(0x00, b"\x89", (0, content))),
        ("a window of 256 MB", by_hand(0x00, b"\x90", (0, content))),
        ("a window of a TB", by_hand(0x00, b"\xf8", (0, content))),
        ("the magic of an old version", b"\x27" + frame(content)[1:]),
    ):
        yield Body(f"zstd {label}", Codec.ZSTD, data)
