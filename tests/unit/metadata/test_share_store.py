"""Share groups in the metadata file."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.share_store import SharePartitionRow
from odradek.metadata.store import MetadataStore

T, U = b"t" * 16, b"u" * 16
FIRST: SharePartitionRow = ("g", T, 0, -1, 0, b"")
SECOND: SharePartitionRow = ("g", T, 1, 5, 2, b"spans")
OTHER: SharePartitionRow = ("h", U, 0, 7, 0, b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metadata.db"
    MetadataStore(path).close()
    return path


def test_partitions_survive_a_restart(path: Path) -> None:
    store = SqliteOffsetStore(path)
    for group_id in ("g", "h"):
        store.put_group((group_id, "share", "share", 1, None))
    store.shares.put_share_partitions([FIRST, SECOND, OTHER])
    store.close()
    MetadataStore(path).close()  # checks the types of all stored values

    again = SqliteOffsetStore(path)

    assert list(again.shares.share_partitions()) == [FIRST, SECOND, OTHER]
    again.close()


def test_one_partition_is_read_and_written() -> None:
    store = SqliteOffsetStore(":memory:").shares
    store.put_share_partitions([FIRST, OTHER])

    store.put_share_partitions([("g", T, 0, 9, 1, b"new")])

    assert store.share_partition("g", T, 0) == ("g", T, 0, 9, 1, b"new")
    assert store.share_partition("h", U, 0) == OTHER
    assert store.share_partition("g", U, 0) is None


def test_partitions_topics_and_groups_are_deleted() -> None:
    store = SqliteOffsetStore(":memory:")
    shares = store.shares
    shares.put_share_partitions([FIRST, SECOND, OTHER, ("g", U, 0, 1, 0, b"")])

    shares.delete_share_partitions([("g", T, 1)])
    shares.delete_share_topics([U])

    assert list(shares.share_partitions()) == [FIRST]
    store.delete_group("g")
    assert list(shares.share_partitions()) == []
