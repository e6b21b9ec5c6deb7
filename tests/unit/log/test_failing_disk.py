"""One partition on a disk that is full or fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, SMALL, batch_of, fill, values_from

OpenLog = Callable[..., PartitionLog]


class Disk:
    """A disk with this many free bytes; replaces ``os.pwritev`` and ``os.pwrite``."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes

    def take(self, data: bytes) -> bytes:
        if not self.left_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = data[: self.left_bytes]
        self.left_bytes -= len(taken)
        return taken

    def pwritev(self, descriptor: int, parts: Sequence[bytes], position: int) -> int:
        return PWRITE(descriptor, self.take(b"".join(parts)), position)

    def pwrite(self, descriptor: int, data: bytes, position: int) -> int:
        return PWRITE(descriptor, self.take(bytes(data)), position)


PWRITE = os.pwrite


@pytest.mark.parametrize("left_bytes", [0, 1, 30])
def test_a_full_disk_loses_no_acknowledged_record(
    open_log: OpenLog, monkeypatch: pytest.MonkeyPatch, left_bytes: int
) -> None:
    log = open_log()
    fill(log, 3)
    disk = Disk(left_bytes)
    with monkeypatch.context() as patch:
        patch.setattr("os.pwritev", disk.pwritev)
        patch.setattr("os.pwrite", disk.pwrite)

        with pytest.raises(ApiError) as refusal:
            log.append(batch_of(b"lost", producer=(7, 0, 0)), NOW_MS)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.segments[-1].path.stat().st_size == log.size_bytes
    log.append(batch_of(b"3", producer=(7, 0, 0)), NOW_MS)
    log.release()
    assert values_from(open_log()) == [(number, b"%d" % number) for number in range(4)]


def test_a_short_write_is_completed(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def halting(descriptor: int, parts: Sequence[bytes], position: int) -> int:
        return PWRITE(descriptor, b"".join(parts)[:20], position)

    with monkeypatch.context() as patch:
        patch.setattr("os.pwritev", halting)

        log.append(batch_of(b"a"), NOW_MS)

    assert values_from(log) == [(0, b"a")]


def test_an_append_fails_if_its_segment_cannot_be_created(open_log: OpenLog, folder: Path) -> None:
    log = open_log(LogConfig(segment_bytes=100))
    log.append(batch_of(b"a"), NOW_MS)
    blocker = folder / f"{1:020d}.log"
    blocker.mkdir()

    with pytest.raises(ApiError) as refusal:
        log.append(batch_of(b"b"), NOW_MS)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_from(log) == [(0, b"a")]
    blocker.rmdir()
    assert log.append(batch_of(b"b"), NOW_MS).base_offset == 1


def test_an_index_that_cannot_be_saved_is_rebuilt(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)
    blocker = folder / f"{0:020d}.timeindex.tmp"
    blocker.mkdir()
    (blocker / "x").touch()

    fill(log, 60)

    assert len(log.segments) > 1
    assert result_of(log.offset_for_time(NOW_MS + 3)) == (NOW_MS + 3, 3)
