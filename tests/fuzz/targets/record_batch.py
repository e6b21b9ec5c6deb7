"""A batch as a producer sends it. The first byte says whether to renew its length and its CRC, without which
the fuzzer would hardly get past them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from crc32c import crc32c

from odradek.log.log_config import LogConfig
from odradek.log.log_validator import OpeningBudget, TooMuchWork, prepared
from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_batch
from odradek.wire.compression import Codec
from odradek.wire.errors import WireError
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import Record, parse_records
from odradek.wire.record_batch import HEADER_BYTES, build_batch, parse_header, records
from odradek.wire.record_scan import scan_records, walk_in_python, walk_records

NOW_MS = 1_700_000_000_000
CONFIGS = (
    LogConfig(),
    LogConfig(cleanup_policy=frozenset({"compact"})),
    LogConfig(compression_type=Codec.LZ4),
)
RENEWED = 0x80


def seeds() -> Iterator[bytes]:
    """Batches of one and of many records, plain and compressed."""
    one = [Record(b"key", b"value", NOW_MS, (("header", b"x"), ("empty", None)))]
    many = [Record(None, b"value %d" % number, NOW_MS + number) for number in range(40)]
    same = [Record(b"k", b"v", NOW_MS)] * 100
    for choice in range(len(CONFIGS)):
        for codec in Codec:
            for written in (one, many, same):
                yield bytes((RENEWED | choice,)) + build_batch(written, codec=codec)


def renewed(batch: bytes) -> bytes:
    """The batch with the length and the CRC of its bytes."""
    head = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:17]
    return head + crc32c(batch[21:]).to_bytes(4) + batch[21:]


def check(data: bytes) -> None:
    """Validate the batch; a consumer must be able to read what is accepted."""
    if not data:
        return
    batch = data[1:]
    if data[0] & RENEWED and len(batch) >= HEADER_BYTES:
        batch = renewed(batch)
    config = CONFIGS[(data[0] & ~RENEWED) % len(CONFIGS)]
    try:
        header = check_batch(batch, max_message_bytes=config.max_message_bytes, transactions=True)
    except ApiError:
        return
    batch = batch[: header.size_bytes]
    check_scan(batch)
    try:
        ready = prepared(memoryview(batch), header, config, NOW_MS, OpeningBudget(1 << 20))
    except (ApiError, TooMuchWork):
        return
    stored = b"".join(ready.at(1_000))
    found = list(records(stored))
    assert len(found) == header.record_count
    if header.codec != Codec.NONE:  # of an uncompressed batch Kafka does not check the offsets either
        assert [record.offset for record in found] == [*range(1_000, 1_000 + len(found))]


def check_scan(batch: bytes) -> None:
    """Records are scanned if and only if they can be parsed, and both ways to walk over them say the same."""
    header = parse_header(batch)
    if header.codec != Codec.NONE or header.record_count > len(batch):
        return
    body = batch[HEADER_BYTES:]
    for most_headers in (INT64_MAX, 1):
        arguments = body, header.record_count, header.base_timestamp_ms, most_headers
        assert walk_records(*arguments) == walk_in_python(*arguments)
    try:
        parsed = list(parse_records(body, header.record_count, 0, header.base_timestamp_ms))
    except WireError:
        parsed = None
    try:
        scan = scan_records(body, header.record_count, header.base_timestamp_ms)
    except WireError:
        assert parsed is None
    else:
        assert parsed is not None
        assert scan.max_timestamp_ms == max(record.timestamp_ms for record in parsed)
        assert scan.has_null_key == any(record.key is None for record in parsed)
