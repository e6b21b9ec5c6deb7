"""The newest segment file of a log after a crash. The first byte says whether to renew the CRCs of its
batches, without which the fuzzer would hardly get past them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fuzz.targets.record_batch import NOW_MS, renewed
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.compression import Codec
from odradek.wire.record import Record
from odradek.wire.record_batch import HEADER_BYTES, build_batch, parse_header, record_batches
from support.batches import batch_of

CONFIG = LogConfig(index_interval_bytes=200)
SEGMENT = f"{0:020d}.log"
RENEWED = 0x80
FOLDER = Path(tempfile.mkdtemp(prefix="odradek-fuzz-", dir="/dev/shm" if Path("/dev/shm").exists() else None))


def seeds() -> Iterator[bytes]:
    """Segments of batches with and without producers and transactions."""
    plain = b"".join(build_batch([Record(b"k", b"v", NOW_MS)], base_offset=offset) for offset in range(5))
    zipped = build_batch([Record(b"k", b"v", NOW_MS)] * 7, codec=Codec.ZSTD, base_offset=5)
    produced = b"".join(
        build_batch(
            [Record(b"k", b"v", NOW_MS)],
            base_offset=12 + number,
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
            transactional=True,
        )
        for number in range(3)
    )
    for content in (b"", plain, plain + zipped, plain + zipped + produced, produced):
        yield bytes((RENEWED,)) + content
        yield bytes((RENEWED,)) + content + b"\0" * 100
        yield bytes((0,)) + content[:-5]


def with_crcs(content: bytes) -> bytes:
    """The content with the CRC of each batch that is whole."""
    parts, position = [], 0
    while len(content) - position >= HEADER_BYTES:
        size = parse_header(content, position).size_bytes
        if not HEADER_BYTES <= size <= len(content) - position:
            break
        parts.append(renewed(content[position : position + size]))
        position += size
    return b"".join((*parts, content[position:]))


def check(data: bytes) -> None:
    """Open the log as after a crash, read it, append to it, and open it again as after a clean stop."""
    if not data:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    (FOLDER / SEGMENT).write_bytes(with_crcs(data[1:]) if data[0] & RENEWED else data[1:])
    log = PartitionLog(FOLDER, CONFIG, NOW_MS)
    end = log.log_end_offset
    offset = log.log_start_offset
    while offset < end:
        found = [header for header, _ in record_batches(log.read(offset, 1 << 20))]
        assert found, f"nothing at offset {offset} before the end {end}"
        offset = found[-1].next_offset
    assert offset == end
    assert log.append(batch_of(b"next", timestamp_ms=NOW_MS), NOW_MS).base_offset == end
    log.close()
    again = PartitionLog(FOLDER, CONFIG, NOW_MS)
    assert again.log_end_offset == end + 1
    again.release()
