"""Five codecs, both directions; bombs, truncated and foreign bytes."""

from __future__ import annotations

import gzip
import itertools
import struct
import tracemalloc
import zlib
from collections.abc import Callable

import lz4.frame
import pytest
import snappy
import zstandard

from odradek.wire.compression import MAX_MEMBERS, Codec, CorruptData, TooLarge, compress, decompress

CODECS = list(Codec)
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"org.apache.kafka.producer.metric.%d=%d;" % (i % 40, i * i) for i in range(3000))
ENOUGH = 1 << 24


def zstd_stream(content: bytes) -> bytes:
    """Compress like zstd-jni's output stream: no content size in the header."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(content) + stream.flush()


def zstd_checksummed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(content)


def lz4_checksummed(content: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(content, block_linked=False, content_checksum=True, store_size=True)
    return frame


def snappy_raw(content: bytes) -> bytes:
    block: bytes = snappy.compress(content)
    return block


@pytest.mark.parametrize("content", [b"", b"x", TEXT, bytes(1 << 20)], ids=["empty", "one", "text", "zeros"])
@pytest.mark.parametrize("codec", CODECS)
def test_compressed_content_is_restored(codec: Codec, content: bytes) -> None:
    packed = compress(codec, content)

    unpacked = decompress(codec, packed, ENOUGH)

    assert unpacked == content


@pytest.mark.parametrize("codec", Codec)
def test_fast_compressed_content_is_restored(codec: Codec) -> None:
    packed = compress(codec, TEXT, fast=True)

    unpacked = decompress(codec, packed, ENOUGH)

    assert unpacked == TEXT


@pytest.mark.parametrize(
    ("codec", "packer"),
    [
        (Codec.GZIP, gzip.compress),
        (Codec.SNAPPY, snappy_raw),
        (Codec.LZ4, lz4_checksummed),
        (Codec.ZSTD, zstd_stream),
        (Codec.ZSTD, zstd_checksummed),
    ],
)
@pytest.mark.parametrize("content", [b"", b"x", TEXT, bytes(1 << 20)], ids=["empty", "one", "text", "zeros"])
def test_streams_of_other_clients_are_decompressed(
    codec: Codec, packer: Callable[[bytes], bytes], content: bytes
) -> None:
    packed = memoryview(packer(content))

    unpacked = decompress(codec, packed, ENOUGH)

    assert unpacked == content


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_several_members_are_one_content(codec: Codec) -> None:
    packed = compress(codec, b"one,") + compress(codec, b"") + compress(codec, b"two")

    unpacked = decompress(codec, packed, 7)

    assert unpacked == b"one,two"


def test_zstd_frames_without_a_size_and_skippable_frames_are_decompressed() -> None:
    packed = struct.pack("<II", 0x184D2A53, 5) + b"hello" + zstd_stream(b"one,") + zstd_checksummed(b"two")

    unpacked = decompress(Codec.ZSTD, packed, 7)

    assert unpacked == b"one,two"


def test_a_snappy_stream_has_blocks_of_32_kb() -> None:
    content = bytes(70_000)

    packed = compress(Codec.SNAPPY, content)

    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    (first_block_bytes,) = struct.unpack_from(">i", packed, 16)
    assert len(snappy.uncompress(packed[20 : 20 + first_block_bytes])) == 32 * 1024


@pytest.mark.parametrize("codec", CODECS)
def test_content_exactly_at_the_limit_is_accepted(codec: Codec) -> None:
    packed = compress(codec, TEXT)

    unpacked = decompress(codec, packed, len(TEXT))

    assert unpacked == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_more_than_the_limit_is_too_large(codec: Codec) -> None:
    packed = compress(codec, TEXT)

    with pytest.raises(TooLarge):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("packer", [zstd_stream, zstd_checksummed])
def test_zstd_without_a_declared_size_is_counted(packer: Callable[[bytes], bytes]) -> None:
    packed = packer(TEXT)

    with pytest.raises(TooLarge):
        decompress(Codec.ZSTD, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_the_limit_counts_all_members(codec: Codec) -> None:
    packed = compress(codec, b"one,") + compress(codec, b"two")

    with pytest.raises(TooLarge):
        decompress(codec, packed, 6)


BOMB = bytes(64 << 20)


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        *((codec, compress(codec, BOMB)) for codec in COMPRESSED),
        (Codec.ZSTD, zstd_stream(BOMB)),
        (Codec.SNAPPY, snappy_raw(BOMB)),
    ],
    ids=[*(codec.name for codec in COMPRESSED), "ZSTD stream", "SNAPPY raw"],
)
def test_a_bomb_is_stopped_within_its_bound(codec: Codec, packed: bytes) -> None:
    limit_bytes = 1 << 20

    tracemalloc.start()
    with pytest.raises(TooLarge):
        decompress(codec, packed, limit_bytes)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # zlib and lz4 keep their input as an unconsumed tail, up to its own length.
    assert peak_bytes < 2 * limit_bytes + 128 * 1024 + len(packed)


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        *((codec, compress(codec, TEXT)) for codec in COMPRESSED),
        (Codec.ZSTD, zstd_stream(TEXT)),
        (Codec.SNAPPY, snappy_raw(TEXT)),
    ],
)
def test_a_truncated_input_is_corrupt_or_a_shorter_stream_of_whole_blocks(
    codec: Codec, packed: bytes
) -> None:
    cuts = [*range(200), *range(200, len(packed), 97), len(packed) - 1]

    shorter = [content for cut in cuts if (content := content_or_none(codec, packed[:cut])) is not None]

    # The xerial stream has no end mark: truncated before or in the length of a block it is a valid stream.
    assert all(codec is Codec.SNAPPY and TEXT.startswith(content) for content in shorter)
    assert len(shorter) <= 5


def content_or_none(codec: Codec, packed: bytes) -> bytes | None:
    try:
        return decompress(codec, packed, ENOUGH)
    except CorruptData:
        return None


@pytest.mark.parametrize("tail", [b"\x00", b"garbage after the end"])
@pytest.mark.parametrize("codec", COMPRESSED)
def test_bytes_after_the_end_are_ignored_where_kafka_ignores_them(codec: Codec, tail: bytes) -> None:
    """tests/integration/java/test_compressed_batches.py compares more with Kafka's own decoders."""
    packed = compress(codec, TEXT) + tail

    if codec is Codec.ZSTD or (codec is Codec.SNAPPY and len(tail) > 3):
        with pytest.raises(CorruptData):
            decompress(codec, packed, ENOUGH)
    else:
        assert decompress(codec, packed, ENOUGH) == TEXT


def test_a_second_xerial_header_is_skipped() -> None:
    packed = compress(Codec.SNAPPY, b"first") + compress(Codec.SNAPPY, b"second")

    assert decompress(Codec.SNAPPY, packed, ENOUGH) == b"firstsecond"


def test_an_lz4_block_that_kafka_takes_for_the_end_is_corrupt() -> None:
    packed = compress(Codec.LZ4, b"x" * 10)

    with pytest.raises(CorruptData, match="stored block without content"):
        decompress(Codec.LZ4, packed[:7] + b"\0\0\0\x80" + packed[7:], ENOUGH)
    stored = lz4.frame.compress(b"\0\0\0\x80abc", block_linked=False)
    assert decompress(Codec.LZ4, stored, ENOUGH) == b"\0\0\0\x80abc"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_an_empty_input_is_corrupt(codec: Codec) -> None:
    packed = b""

    with pytest.raises(CorruptData):
        decompress(codec, packed, ENOUGH)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_uncompressed_content_is_corrupt(codec: Codec) -> None:
    packed = TEXT

    with pytest.raises(CorruptData):
        decompress(codec, packed, ENOUGH)


@pytest.mark.parametrize("codec", [-1, 5, 127])
def test_an_unknown_codec_is_corrupt(codec: int) -> None:
    packed = TEXT

    with pytest.raises(CorruptData, match="unknown codec"):
        decompress(codec, packed, ENOUGH)


def xerial(*blocks: bytes) -> bytes:
    return b"\x82SNAPPY\x00" + bytes(8) + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


RLE_FRAME = zstd_stream(BOMB)[:6]
"""A frame header without a content size."""


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (Codec.GZIP, zlib.compress(b"", wbits=31) * (MAX_MEMBERS + 1)),
        (Codec.ZSTD, zstandard.ZstdCompressor().compress(b"") * (MAX_MEMBERS + 1)),
        (Codec.SNAPPY, xerial(*itertools.repeat(b"\x00", 10_000))),
        (Codec.ZSTD, RLE_FRAME + bytes(3) * 300_000),
        (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00"),
        (Codec.SNAPPY, b"\xff\xff\xff\xff\xff\x0f\x00"),
        (Codec.SNAPPY, xerial(b"")),
        (Codec.SNAPPY, b"\x82SNAPPY\x00\x00\x00"),
        (Codec.SNAPPY, xerial() + b"\xff\xff\xff\xff"),
        (Codec.SNAPPY, xerial() + b"\x7f\xff\xff\xff\x00"),
        (Codec.ZSTD, struct.pack("<II", 0x184D2A50, 0xFFFFFFFF)),
        (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x20\x00" + b"\x0b\x00\x00x"),
    ],
    ids=[
        "thousands of gzip members",
        "thousands of zstd frames",
        "thousands of empty snappy blocks",
        "thousands of empty zstd blocks",
        "snappy length beyond what the bytes can hold",
        "snappy length of six bytes",
        "empty snappy block",
        "cut xerial header",
        "negative xerial block length",
        "xerial block longer than the rest",
        "zstd skippable frame longer than the rest",
        "zstd frame of declared size 0 with content",
    ],
)
def test_hostile_structure_is_corrupt(codec: Codec, packed: bytes) -> None:
    limit_bytes = ENOUGH

    with pytest.raises(CorruptData):
        decompress(codec, packed, limit_bytes)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_failed_decompressor_leaves_nothing_behind(codec: Codec) -> None:
    good = compress(codec, TEXT)
    for bad in (good[:-3] + b"\xff\xff\xff", good[: len(good) // 2], good + b"more"):
        content_or_none(codec, bad)

        unpacked = decompress(codec, good, ENOUGH)

        assert unpacked == TEXT


def test_linked_blocks_of_lz4_are_refused_as_by_the_decoder_of_kafka() -> None:
    packed = lz4.frame.compress(bytes(100_000), block_linked=True)

    with pytest.raises(CorruptData, match="independent blocks"):
        decompress(Codec.LZ4, packed, ENOUGH)


def test_an_lz4_frame_with_a_dictionary_is_refused() -> None:
    packed = bytearray(compress(Codec.LZ4, TEXT))
    packed[4] |= 1

    with pytest.raises(CorruptData, match="dictionary"):
        decompress(Codec.LZ4, packed, ENOUGH)
