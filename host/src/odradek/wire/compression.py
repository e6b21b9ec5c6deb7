"""The five codecs of record batches and client telemetry (KIP-110, KIP-714), with bounds on each.

A size that the sender declares is checked before any memory is taken; without one, the output is counted as
it is produced. These functions raise only ``TooLarge`` and ``CorruptData``. No input makes them take more
than about ``max_bytes`` plus 64 kB, or more than a few milliseconds of bookkeeping per MiB.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import lz4.frame
import snappy
import zstandard

from odradek.wire.errors import WireError
from odradek.wire.varint import read_varint

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """Numbers as in the attributes of a record batch and in PushTelemetry."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CorruptData(WireError):
    """The bytes are invalid for the codec, end too early, or continue after the end."""


class TooLarge(WireError):
    """The content is larger than the caller allows."""


ZSTD_LEVEL: Final = 3
"""Default of Kafka's ``compression.zstd.level``."""
FAST_ZSTD: Final = 1
MAX_MEMBERS: Final = 128
"""The most gzip members or zstd frames in one input. Encoders write one; thousands of empty ones are an
attack."""


def decompress(codec: int, data: Buffer, max_bytes: int) -> bytes:
    """Return the content of ``data``, at most ``max_bytes`` long.

    Raises:
        TooLarge: The content is longer than ``max_bytes``.
        CorruptData: The bytes are invalid for the codec, truncated or followed by others, or the codec is
            unknown.
    """
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise CorruptData(f"unknown codec {codec}")
    return decompressor(data, max_bytes)


def compress(codec: int, data: bytes, fast: bool = False) -> bytes:
    """Compress ``data`` like Kafka's own clients: xerial snappy, lz4 frames of independent blocks.

    Args:
        codec: A ``Codec``.
        data: What to compress.
        fast: Use level 1 of zstd instead of 3. For telemetry this takes two thirds of the time and no more
            bytes.
    """
    if fast and codec == Codec.ZSTD:
        return _zstd(data, FAST_ZSTD)
    return _COMPRESSORS[Codec(codec)](data)


def _stored(data: Buffer, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise TooLarge(f"{len(data)} bytes, at most {max_bytes} allowed")
    return bytes(data)


def _too_large() -> TooLarge:
    return TooLarge("larger than allowed after decompression")


# gzip


_GZIP_TAIL_BYTES: Final = 18
_NO_MEMBER: Final = re.compile("header|method")
"""What zlib says about the beginning of a member."""


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    # As Java's GZIPInputStream: what follows a member and does not begin like one is ignored.
    parts: list[bytes] = []
    rest, left = data, max_bytes
    for _ in range(MAX_MEMBERS):
        member = zlib.decompressobj(31)
        try:
            content = member.decompress(rest, left + 1)
        except zlib.error as error:
            if parts and _NO_MEMBER.search(str(error)):
                return b"".join(parts)
            raise CorruptData(f"gzip: {error}") from None
        left -= len(content)
        if left < 0:
            raise _too_large()
        if not member.eof:
            raise CorruptData("gzip: ends inside a member")
        parts.append(content)
        rest = member.unused_data
        if len(rest) <= _GZIP_TAIL_BYTES:
            return b"".join(parts)
    raise CorruptData(f"more than {MAX_MEMBERS} gzip members")


def _gzip(data: bytes) -> bytes:
    return zlib.compress(data, wbits=31)


# snappy: one raw block (librdkafka), or the blocks of xerial's SnappyOutputStream (Java, Python clients)

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = struct.Struct(">i")
_SNAPPY_MAX_RATIO: Final = 22
"""The densest element is a copy: three bytes that expand to 64."""


def _unsnappy(data: Buffer, max_bytes: int) -> bytes:
    if data[:8] == _XERIAL_MAGIC:
        return _xerial_blocks(memoryview(data), max_bytes)
    return _snappy_block(data, max_bytes)


def _xerial_blocks(data: memoryview, max_bytes: int) -> bytes:
    # A real writer's blocks hold 32 kB, at least 1.5 kB when compressed, so only a few can be small. The
    # limit keeps an input of tiny blocks from taking time out of proportion to its size.
    blocks_left = 64 + len(data) // 256
    blocks: list[bytes] = []
    position, left = len(_XERIAL_HEADER), max_bytes
    # As xerial's SnappyInputStream: a length that is cut ends the blocks, and another header may come.
    while position + _BLOCK_LENGTH.size <= len(data):
        if bytes(data[position : position + 8]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        start, end = _xerial_block(data, position)
        blocks.append(_snappy_block(data[start:end], left))
        left -= len(blocks[-1])
        blocks_left -= 1
        if not blocks_left:
            raise CorruptData("snappy: too many small blocks")
        position = end
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptData("snappy: ends inside the header")
    return b"".join(blocks) if len(blocks) != 1 else blocks[0]


def _xerial_block(data: memoryview, position: int) -> tuple[int, int]:
    """Start and end of the raw block whose length is at ``position``."""
    start = position + _BLOCK_LENGTH.size
    (length,) = _BLOCK_LENGTH.unpack_from(data, position)
    if not 0 <= length <= len(data) - start:
        raise CorruptData(f"snappy: block of {length} bytes, {len(data) - start} left")
    return start, start + length


def _snappy_block(block: Buffer, max_bytes: int) -> bytes:
    try:
        length, _ = read_varint(block, 0, 0xFFFF_FFFF)
    except (IndexError, WireError):
        raise CorruptData("snappy: bad length") from None
    if length > _SNAPPY_MAX_RATIO * len(block):
        raise CorruptData(f"snappy: {len(block)} bytes cannot hold {length}")
    if length > max_bytes:
        raise _too_large()
    try:
        content: bytes = snappy.uncompress(block)
    except snappy.UncompressError:
        raise CorruptData("snappy: bad block") from None
    return content


def _snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = snappy.compress(data[start : start + _XERIAL_BLOCK_BYTES])
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


# lz4, the standard frame format


_LZ4_LENGTH: Final = struct.Struct("<I")
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT: Final = 0x20
_LZ4_CHECKED: Final = _LZ4_INDEPENDENT | 0x01
"""The flag of a dictionary beside it."""
_LZ4_STORED: Final = b"\0\0\0\x80"
"""The length of a stored block without content."""


def _unlz4(data: Buffer, max_bytes: int) -> bytes:
    # As Kafka's Lz4BlockInputStream: a consumer in Java could not read what is stored otherwise.
    if data[:4] != _LZ4_MAGIC or len(data) < 7 or data[4] & _LZ4_CHECKED != _LZ4_INDEPENDENT:
        raise CorruptData("lz4: expected a frame of independent blocks without a dictionary")
    frame = lz4.frame.LZ4FrameDecompressor()
    try:
        content: bytes = frame.decompress(data, max_bytes + 1)
    except RuntimeError as error:
        raise CorruptData(f"lz4: {error}") from None
    if len(content) > max_bytes:
        raise _too_large()
    if not frame.eof:
        raise CorruptData("lz4: ends inside the frame")
    if _LZ4_STORED in bytes(data) and _ends_early(data):
        raise CorruptData("lz4: a stored block without content")
    return content


def _ends_early(data: Buffer) -> bool:
    """Whether the first block without content is a stored one: Kafka's decoder takes it for the end."""
    flags = data[4]
    at, check_bytes = 7 + (flags & 0x08), (flags & 0x10) >> 2
    while True:
        (length,) = _LZ4_LENGTH.unpack_from(data, at)
        if not length & 0x7FFF_FFFF:
            return bool(length)
        at += _LZ4_LENGTH.size + (length & 0x7FFF_FFFF) + check_bytes


def _lz4(data: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return frame


# zstd: the blocks of a frame are walked first. The library does not tell where a frame ends, nor how much
# memory a frame without a declared content size needs.

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE: Final = 0x184D2A50
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_READ_BYTES: Final = 64 * 1024
_MAGIC_AND_SIZE: Final = struct.Struct("<II")
_idle_zstd: Final[list[zstandard.ZstdDecompressor]] = []
"""Decompressors for reuse: creating one takes 18 µs, a quarter of a push. ``pop`` and ``append`` are
atomic, so threads can share the list."""


def _unzstd(data: Buffer, max_bytes: int) -> bytes:
    try:
        decompressor = _idle_zstd.pop()
    except IndexError:
        decompressor = zstandard.ZstdDecompressor()
    try:
        content = _zstd_frames(decompressor, data, max_bytes)
    except zstandard.ZstdError as error:
        raise CorruptData(f"zstd: {error}") from None
    _idle_zstd.append(decompressor)
    return content


def _zstd_frames(decompressor: zstandard.ZstdDecompressor, data: Buffer, max_bytes: int) -> bytes:
    content, end = _zstd_frame(decompressor, data, max_bytes)
    if end == len(data):
        return content
    parts = [content]
    rest, left = memoryview(data), max_bytes
    for _ in range(MAX_MEMBERS - 1):
        rest, left = rest[end:], left - len(content)
        content, end = _zstd_frame(decompressor, rest, left)
        parts.append(content)
        if end == len(rest):
            return b"".join(parts)
    raise CorruptData(f"zstd: more than {MAX_MEMBERS} frames")


def _zstd_frame(decompressor: zstandard.ZstdDecompressor, data: Buffer, max_bytes: int) -> tuple[bytes, int]:
    """Content and length of the first frame (RFC 8878, 3.1)."""
    if len(data) < 8:
        raise CorruptData("zstd: ends inside a frame header")
    magic, size = _MAGIC_AND_SIZE.unpack_from(data)
    if magic == _ZSTD_MAGIC:
        content, end = _zstd_content(decompressor, data, max_bytes)
    elif magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
        content, end = b"", 8 + size
    else:
        raise CorruptData("zstd: no frame")
    if end > len(data):
        raise CorruptData("zstd: ends inside a frame")
    return content, end


def _zstd_content(
    decompressor: zstandard.ZstdDecompressor, data: Buffer, max_bytes: int
) -> tuple[bytes, int]:
    declared = zstandard.frame_content_size(data)
    if declared > max_bytes:
        raise _too_large()
    end, ceiling = _zstd_extent(data, max_bytes)
    if end > len(data):
        raise CorruptData("zstd: ends inside a frame")
    # Nothing bounds the content yet: count it before any memory is taken for it.
    if not end or (declared < 0 and ceiling > max_bytes):
        _zstd_count(decompressor, data, max_bytes)
    if not end:
        raise CorruptData("zstd: too many small blocks")
    if not declared:  # the library trusts a declared size of 0 and would not check the blocks
        if ceiling:
            raise CorruptData("zstd: content in a frame that declares none")
        return b"", end
    frame = data if end == len(data) else data[:end]
    return decompressor.decompress(frame, max_output_size=min(ceiling, max_bytes) + 1), end


def _zstd_extent(data: Buffer, max_bytes: int) -> tuple[int, int]:
    """Length of the frame and an upper bound of its content; length 0 if it has implausibly many blocks.

    A full block holds 128 kB. Many blocks of less than 64 bytes on average are an attack.
    """
    position = zstandard.frame_header_size(data)
    last_header = len(data) - 3
    ceiling = 0
    for _ in range(64 + len(data) // 64 + max_bytes // 4096):
        if position > last_header:
            raise CorruptData("zstd: ends inside a block header")
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        size, kind = header >> 3, header >> 1 & 3
        position += 3 + (1 if kind == 1 else size)  # kind 1: one byte, repeated
        ceiling += _ZSTD_BLOCK_BYTES if kind == 2 else size
        if header & 1:
            return position + 4 * (data[4] >> 2 & 1), ceiling  # the content checksum, if the frame has one
    return 0, ceiling


def _zstd_count(decompressor: zstandard.ZstdDecompressor, data: Buffer, max_bytes: int) -> None:
    """Raise ``TooLarge`` if the content of the first frame is longer than ``max_bytes``."""
    reader = decompressor.stream_reader(data, read_size=_READ_BYTES)
    total = 0
    while chunk := reader.read(_READ_BYTES):
        total += len(chunk)
        if total > max_bytes:
            raise _too_large()


def _zstd(data: bytes, level: int = ZSTD_LEVEL) -> bytes:
    return zstandard.ZstdCompressor(level).compress(data)


_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int], bytes]]] = {
    Codec.NONE: _stored,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
_COMPRESSORS: Final[dict[Codec, Callable[[bytes], bytes]]] = {
    Codec.NONE: bytes,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
