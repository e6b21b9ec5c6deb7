from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from odradek.metadata.store import MetadataStore, StoreError
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.failing_connection import FailingConnection


def test_a_stored_transaction_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    metadata, store = MetadataStore(path), SqliteTransactionStore(path)
    store.put_transaction("one", "before")
    store.put_transaction("two", "gone")

    store.put_transaction("one", "after")
    store.delete_transactions(["two", "unknown"])
    store.close()

    again = SqliteTransactionStore(path)
    assert again.transactions() == [("one", "after")]
    again.close()
    metadata.close()


def test_a_store_that_was_not_closed_can_be_read(tmp_path: Path) -> None:
    store = SqliteTransactionStore(tmp_path / "metadata.db")

    store.put_transaction("one", "state")

    reader = sqlite3.connect(tmp_path / "metadata.db")
    assert reader.execute("select state from transactions").fetchall() == [("state",)]
    reader.close()
    store.close()


@pytest.mark.parametrize("action", ["transactions", "put_transaction", "delete_transactions"])
def test_an_error_of_the_file_is_retriable(action: str) -> None:
    store = SqliteTransactionStore(":memory:")
    store.connection.execute("drop table transactions")
    arguments = {"put_transaction": ("one", "state"), "delete_transactions": (["one"],)}.get(action, ())

    with pytest.raises(ApiError) as refused:
        getattr(store, action)(*arguments)

    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not store.connection.in_transaction
    store.close()


def test_ids_that_cannot_be_deleted_leave_no_transaction_open(tmp_path: Path) -> None:
    store = SqliteTransactionStore(tmp_path / "metadata.db")
    store.put_transaction("one", "state")
    connection = store.connection
    failing: Any = FailingConnection(connection, "commit", rolls_back=False)
    store.connection = failing

    with pytest.raises(ApiError) as refused:
        store.delete_transactions(["one"])

    store.connection = connection
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not connection.in_transaction
    assert store.transactions() == [("one", "state")]
    store.delete_transactions(["one"])
    assert store.transactions() == []
    store.close()


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    path.write_bytes(b"something else" * 100)

    with pytest.raises(StoreError):
        SqliteTransactionStore(path)
