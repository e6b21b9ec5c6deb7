"""Checkpoints of the metadata file's write-ahead log, at intervals, on a thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.upkeep.metadata_checkpoints import INTERVAL_MS, MetadataCheckpoints

ROW = ("g", b"t" * 16, 0, 5, 1, "note", 100, None)


def inline(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    try:
        result = work()
    except sqlite3.Error as error:
        result = error
    done(result)


def started(store: SqliteOffsetStore, path: Path) -> MockClock:
    clock = MockClock()
    changes = MetadataCheckpoints(path, lambda: store.connection.total_changes, clock.timer, clock, inline)
    changes.start()
    return clock


def test_committed_data_reaches_the_file(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    store = SqliteOffsetStore(path)
    clock = started(store, path)
    store.put_offsets([ROW])

    clock.advance(INTERVAL_MS)

    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())  # without the write-ahead log
    copied = SqliteOffsetStore(copy)
    assert list(copied.offsets()) == [ROW]
    copied.close()
    store.close()


def test_without_a_write_there_is_no_checkpoint(tmp_path: Path) -> None:
    store = SqliteOffsetStore(tmp_path / "metadata.db")
    clock = started(store, tmp_path / "missing" / "metadata.db")

    clock.advance(10 * INTERVAL_MS)

    assert len(clock.timer) == 1
    store.close()


def test_a_failed_checkpoint_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteOffsetStore(tmp_path / "metadata.db")
    clock = started(store, tmp_path / "missing" / "metadata.db")
    store.put_offsets([ROW])

    clock.advance(INTERVAL_MS)

    assert "metadata checkpoint failed" in caplog.text
    assert len(clock.timer) == 1
    store.close()
