"""The write-ahead log of the metadata file is brought into the file now and then, on a thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.server.upkeep.metadata_checkpoints import INTERVAL_MS, MetadataCheckpoints
from odradek.testing.clock import MockClock

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


def test_what_was_committed_gets_into_the_file(tmp_path: Path) -> None:
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


def test_nothing_is_done_where_nothing_was_written(tmp_path: Path) -> None:
    store = SqliteOffsetStore(tmp_path / "metadata.db")
    clock = started(store, tmp_path / "missing" / "metadata.db")

    clock.advance(10 * INTERVAL_MS)

    assert len(clock.timer) == 1
    store.close()


def test_a_checkpoint_that_fails_is_said_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteOffsetStore(tmp_path / "metadata.db")
    clock = started(store, tmp_path / "missing" / "metadata.db")
    store.put_offsets([ROW])

    clock.advance(INTERVAL_MS)

    assert "metadata checkpoint failed" in caplog.text
    assert len(clock.timer) == 1
    store.close()
