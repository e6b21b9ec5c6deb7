"""Slices of segments that are read after the segment was deleted, compacted or moved."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.log.file_slice import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.log.segment_file import OpenFiles
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of

EVERYTHING = 1 << 30


def filled(directory: Path, files: OpenFiles | None = None) -> PartitionLog:
    """Two sealed segments of one batch each, and an empty one."""
    directory.mkdir(parents=True, exist_ok=True)
    log = PartitionLog(directory, LogConfig(), NOW_MS, files)
    for value in (b"a" * 1_000, b"b" * 1_000):
        log.append(batch_of(value), NOW_MS)
        log.roll(NOW_MS)
    return log


def slice_of(log: PartitionLog, offset: int = 0) -> FileSlice:
    found = log.find(offset, EVERYTHING)
    assert found is not None
    return found.slice()


def open_descriptors(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    names = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [name for name in names if name.startswith(str(folder))]


def bury(log: PartitionLog) -> None:
    log.delete_records(1)
    while log.graves:
        log.graves.popleft().path.unlink()


def evict_and_bury(log: PartitionLog) -> None:
    log.segments[0].release()
    bury(log)


def compact(log: PartitionLog) -> None:
    compacted = log.detached_segment(0, NOW_MS)
    compacted.path = compacted.path.with_suffix(".cleaned")
    compacted.create()
    compacted.append_many(batch_of(b"c"))
    log.replace(log.segments[:1], compacted)
    while log.graves:
        log.graves.popleft().path.unlink()


@pytest.mark.parametrize("end", [bury, evict_and_bury, compact, PartitionLog.close, PartitionLog.deleted])
def test_a_slice_outlives_its_segment(tmp_path: Path, end: Callable[[PartitionLog], None]) -> None:
    log = filled(tmp_path)
    stored = log.read(0, EVERYTHING)
    part = slice_of(log)

    end(log)

    assert (len(part), bytes(part), part.read(10, 5)) == (len(stored), stored, stored[10:15])


def test_a_slice_outlives_its_topic(tmp_path: Path) -> None:
    logs = LogManager(tmp_path, now_ms=NOW_MS)
    log = logs.open("t", 0, LogConfig(), bytes(16), NOW_MS)
    log.append(batch_of(b"a"), NOW_MS)
    stored, part = log.read(0, EVERYTHING), slice_of(log)
    log.segments[0].release()

    logs.delete("t", 0)

    assert bytes(part) == stored


def test_a_slice_outlives_a_move_to_another_directory(tmp_path: Path) -> None:
    logs, clock = LogManager(tmp_path / "a", tmp_path / "b", now_ms=NOW_MS), MockClock()
    log = logs.open("t", 0, LogConfig(), bytes(16), NOW_MS)
    log.append(batch_of(b"a"), NOW_MS)
    stored, part = log.read(0, EVERYTHING), slice_of(log)
    other = next(each for each in logs.directories if each != log.directory.parent)
    moving = logs.move("t", 0, other, clock)
    assert moving is not None

    for step in moving.steps():
        if callable(step):
            step()

    assert log.directory.parent == other
    assert bytes(part) == stored


def test_a_slice_does_not_grow_with_its_segment(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.append(batch_of(b"c"), NOW_MS)
    part = slice_of(log, 2)
    before = bytes(part)

    log.append(batch_of(b"d"), NOW_MS)

    assert bytes(part) == before
    assert part.read(len(before) - 1, 100) == before[-1:]


def test_the_last_slice_closes_the_file(tmp_path: Path) -> None:
    log = filled(tmp_path)
    parts = [slice_of(log), slice_of(log)]
    gc.disable()
    bury(log)
    opened = [open_descriptors(tmp_path)]

    while parts:
        parts.pop()
        opened.append(open_descriptors(tmp_path))

    gc.enable()
    deleted = [[name for name in names if name.endswith("(deleted)")] for names in opened]
    assert [len(names) for names in deleted] == [1, 1, 0]


def test_slices_of_one_segment_keep_its_descriptor_within_the_bound(tmp_path: Path) -> None:
    files = OpenFiles(1)
    log = filled(tmp_path, files)

    parts = [slice_of(log, offset) for offset in (0, 1)]

    assert [len(bytes(part)) for part in parts] == [len(part) for part in parts]
    assert len(files) == 1


def test_only_so_many_deleted_files_stay_open(tmp_path: Path) -> None:
    log = filled(tmp_path, OpenFiles(1))
    parts = [slice_of(log, offset) for offset in (0, 1)]

    log.delete_records(2)

    assert len(bytes(parts[0])) == len(parts[0])
    with pytest.raises(ApiError) as refused:
        bytes(parts[1])
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
