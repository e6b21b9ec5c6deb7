"""Compaction is killed at every file operation: afterwards the log is either unchanged or compacted."""

from __future__ import annotations

import shutil
from itertools import count, pairwise
from pathlib import Path

import pytest

from odradek.log.cleanable import cleanable
from odradek.log.cleaner import Cleaner
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import run_steps
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch, record_batches, records
from support.batches import NOW_MS
from support.failing_disk import Killed, kill_at

CONFIG = LogConfig(segment_bytes=600, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
OPERATIONS = ("rename", "truncate", "pwritev", "unlink", "utime", "replace")


def filled(folder: Path) -> PartitionLog:
    log = PartitionLog(folder, CONFIG, NOW_MS)
    for number in range(40):
        key = b"only%d" % number if number % 5 == 0 else b"k%d" % (number % 7)
        log.append(build_batch([Record(key, b"%d" % number, NOW_MS)]), NOW_MS)
    log.roll(NOW_MS)
    run_steps(Cleaner(cleanable(log, NOW_MS), NOW_MS).steps())
    for number in range(40, 60):
        log.append(build_batch([Record(b"k%d" % (number % 7), b"%d" % number, NOW_MS)]), NOW_MS)
    return log


def latest(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    found: dict[bytes | None, bytes | None] = {}
    offset, last = log.log_start_offset, -1
    while offset < log.log_end_offset:
        for header, batch in record_batches(log.read(offset, 1 << 20)):
            assert header.base_offset > last
            last = header.last_offset
            found |= {record.key: record.value for record in records(batch, header)}
            offset = header.next_offset
    return found


def test_a_kill_at_any_operation_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = tmp_path / "template"
    template.mkdir()
    log = filled(template)
    expected = latest(log)
    end = log.log_end_offset
    log.release()
    outcomes = set()

    for operation in count():
        folder = tmp_path / f"run-{operation}"
        shutil.copytree(template, folder)
        log = PartitionLog(folder, CONFIG, NOW_MS)
        killed = False
        with monkeypatch.context() as patch:
            kill_at(operation, OPERATIONS, patch)
            try:
                run_steps(Cleaner(cleanable(log, NOW_MS), NOW_MS).steps())
            except Killed:
                killed = True
        log.release()
        again = PartitionLog(folder, CONFIG, NOW_MS)
        assert latest(again) == expected
        assert again.log_end_offset == end
        for segment, following in pairwise(again.segments):
            assert all(header.last_offset < following.base_offset for _, header in segment.walk(0))
        assert not [path for path in folder.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
        outcomes.add(tuple(segment.base_offset for segment in again.segments))
        again.release()
        shutil.rmtree(folder)
        if not killed:
            break

    assert operation > 10
    assert len(outcomes) > 1
