from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from odradek.metadata.store import MetadataStore, StoreError
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def test_what_was_put_is_there_again(tmp_path: Path) -> None:
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


def test_it_does_not_need_to_be_closed(tmp_path: Path) -> None:
    store = SqliteTransactionStore(tmp_path / "metadata.db")

    store.put_transaction("one", "state")

    reader = sqlite3.connect(tmp_path / "metadata.db")
    assert reader.execute("select state from transactions").fetchall() == [("state",)]
    reader.close()
    store.close()


@pytest.mark.parametrize("action", ["transactions", "put_transaction", "delete_transactions"])
def test_trouble_with_the_file_is_to_be_tried_again(action: str) -> None:
    store = SqliteTransactionStore(":memory:")
    store.connection.execute("drop table transactions")
    arguments = {"put_transaction": ("one", "state"), "delete_transactions": (["one"],)}.get(action, ())

    with pytest.raises(ApiError) as refused:
        getattr(store, action)(*arguments)

    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not store.connection.in_transaction
    store.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "metadata.db"
    path.write_bytes(b"something else" * 100)

    with pytest.raises(StoreError):
        SqliteTransactionStore(path)
