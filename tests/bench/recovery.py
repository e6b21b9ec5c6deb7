"""The time to open a log of 1 GiB: after a clean close, and after kill -9.

After kill -9 every batch of the newest segment is read and its CRC checked, so one segment of 1 GiB is the
worst case. The file is in the page cache, as after a crash of the process; a cold disk adds its own time. For
comparison, the same bytes are read and checksummed without parsing.

Usage, from the folder above: ``python -m bench.recovery [--mib 1024] [--batch-bytes 1000]``
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crc32c import crc32c

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch

CONFIG = LogConfig(segment_bytes=(1 << 31) - 1, segment_index_bytes=64 << 20)
CHUNK_BYTES = 1 << 20


def fill(log: PartitionLog, total_bytes: int, batch_bytes: int) -> int:
    """Append batches until the log has this size; return their number."""
    batch = build_batch([Record(None, os.urandom(max(batch_bytes - 71, 0)), 0)])
    count = 0
    while log.size_bytes < total_bytes:
        log.append(batch, 0)
        count += 1
    return count


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def checksum(path: Path) -> None:
    """The minimum cost of reading and checking."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            crc32c(chunk)


def measure(folder: Path, mib: int, batch_bytes: int) -> dict[str, float]:
    """Seconds by step."""
    log = PartitionLog(folder, CONFIG, 0)
    batches = fill(log, mib << 20, batch_bytes)
    path = log.segments[-1].path
    found: list[PartitionLog] = []

    def opened() -> None:
        found.append(PartitionLog(folder, CONFIG, 0))

    log.release()
    crashed_s = timed(opened)
    found[-1].close()
    closed_s = timed(opened)
    if found[-1].log_end_offset != batches:
        sys.exit(f"{batches} batches were written, {found[-1].log_end_offset} recovered")
    found[-1].release()
    return {
        "after kill -9": crashed_s,
        "after a close": closed_s,
        "reading and CRC alone": timed(lambda: checksum(path)),
    }


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--batch-bytes", type=int, default=1000)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder), arguments.mib, arguments.batch_bytes)
    for name, value in seconds.items():
        print(f"{name:<24}{value:8.3f} s {arguments.mib / value:10.0f} MiB/s")


if __name__ == "__main__":
    main(sys.argv[1:])
