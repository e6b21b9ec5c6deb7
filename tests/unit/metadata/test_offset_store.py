"""Offsets in the metadata file: together with its other tables, through restarts, and with a failing disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.metadata.offset_store import OffsetRow, SqliteOffsetStore
from odradek.metadata.store import MetadataStore, StoreError
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

T = b"t" * 16
ROW: OffsetRow = ("g", T, 0, 5, 1, "note", 100, None)
EXPIRING: OffsetRow = ("g", T, 1, 6, -1, "", 100, 200)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metadata.db"
    MetadataStore(path).close()
    return path


def test_everything_survives_a_restart(path: Path) -> None:
    store = SqliteOffsetStore(path)
    store.put_offsets([ROW, EXPIRING])
    store.put_pending([(7, ROW)])
    store.put_group(("g", "classic", "consumer", 3, None))
    store.close()

    again = SqliteOffsetStore(path)

    assert list(again.offsets()) == [ROW, EXPIRING]
    assert list(again.pending()) == [(7, ROW)]
    assert list(again.groups()) == [("g", "classic", "consumer", 3, None)]
    again.close()


def test_the_metadata_store_and_this_one_share_the_file(path: Path) -> None:
    metadata, store = MetadataStore(path), SqliteOffsetStore(path)
    store.put_offsets([ROW])

    metadata.put_value("key", "value")
    store.put_offsets([EXPIRING])

    assert metadata.value("key") == "value"
    assert len(list(store.offsets())) == 2
    store.close()
    metadata.close()


def test_a_later_commit_replaces_an_earlier_one(path: Path) -> None:
    store = SqliteOffsetStore(path)
    store.put_offsets([ROW])

    store.put_offsets([("g", T, 0, 9, 1, "", 101, None)])

    assert [row[3] for row in store.offsets()] == [9]
    store.close()


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "metadata.db"
    bad.write_bytes(b"not a database, and long enough to have a header that says otherwise" * 9)

    with pytest.raises(StoreError):
        SqliteOffsetStore(bad)


def test_the_failures_of_all_stores_of_a_file_are_one_log(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = MetadataStore(path)
    metadata.failures.clock = clock = MockClock()
    offsets = SqliteOffsetStore(path, metadata.failures)
    transactions = SqliteTransactionStore(path, metadata.failures)
    for store in (metadata, offsets, transactions):
        store.connection.execute("pragma query_only = on")

    writes: tuple[Callable[[], object], ...] = (
        lambda: metadata.put_value("k", "v"),
        lambda: offsets.delete_group("g"),
        lambda: transactions.put_transaction("tx", "state"),
    )
    for _ in range(2):
        for write in writes:
            with pytest.raises(ApiError):
                write()
        clock.advance(60_000)

    assert [(line.getMessage(), vars(line)["unlogged"]) for line in caplog.records] == [
        ("cannot use the metadata file", 0),
        ("cannot use the metadata file", 2),
    ]
    for store in (metadata, offsets, transactions):
        store.close()


def test_a_failed_write_is_refused_and_stores_nothing(path: Path) -> None:
    store = SqliteOffsetStore(path)
    store.put_offsets([EXPIRING])
    store.connection.execute("pragma query_only = on")

    with pytest.raises(ApiError) as refused:
        store.put_offsets([ROW])

    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(store.offsets()) == [EXPIRING]
    store.close()


def test_a_wrong_row_rolls_back_its_whole_request(path: Path) -> None:
    store = SqliteOffsetStore(path)

    with pytest.raises(ApiError):
        store.put_offsets([ROW, ("g", T, 1, None, 0, "", 0, None)])  # type: ignore[list-item]  # on purpose

    assert list(store.offsets()) == []
    store.close()


def test_a_column_that_the_file_does_not_declare_is_an_error() -> None:
    store = SqliteOffsetStore(":memory:")
    store.connection.execute("alter table groups rename column type to kind")

    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        list(store.groups())
