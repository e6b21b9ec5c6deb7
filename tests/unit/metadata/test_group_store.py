"""Groups that are kept with their members, in the metadata file."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.metadata.offset_store import GroupRow, SqliteOffsetStore
from odradek.metadata.store import MetadataStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "metadata.db"
    MetadataStore(path).close()
    return path


def row(generation: int, kind: str = "streams", group_id: str = "g") -> GroupRow:
    return (group_id, kind, kind, generation, None)


def stored(store: SqliteOffsetStore) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
    return list(store.group_states()), list(store.group_members())


def test_groups_and_members_survive_a_restart(path: Path) -> None:
    store = SqliteOffsetStore(path)
    store.put_group(row(2), "{}", [("g", "m", "{}"), ("g", "n", "{}")])
    store.put_group(row(3), "[]", [("g", "n", "[]")], gone=["m"])
    store.put_group(row(3))  # leaves the state and the members
    store.close()
    MetadataStore(path).close()  # checks the types of all stored values

    again = SqliteOffsetStore(path)

    assert list(again.groups()) == [row(3)]
    assert stored(again) == ([("g", "[]")], [("g", "n", "[]")])
    again.close()


def test_a_deleted_group_leaves_nothing() -> None:
    store = SqliteOffsetStore(":memory:")
    store.put_group(row(2), "{}", [("g", "m", "{}")])
    store.put_group(row(2, group_id="h"), "{}", [("h", "m", "{}")])

    store.delete_group("g")

    assert stored(store) == ([("h", "{}")], [("h", "m", "{}")])


@pytest.mark.parametrize("later", ["delete from groups", "update groups set type = 'classic'"])
def test_what_a_release_without_these_groups_has_left_is_deleted(path: Path, later: str) -> None:
    """It knows only the table of groups, and may have deleted a group or made a classic one of it."""
    store = SqliteOffsetStore(path)
    store.put_group(row(2, "share"), "{}", [("g", "m", "{}")])
    store.shares.put_share_partitions([("g", b"t" * 16, 0, -1, 0, b"")])
    store.connection.execute(later)
    store.close()

    again = SqliteOffsetStore(path)

    assert stored(again) == ([], [])
    assert list(again.shares.share_partitions()) == []
    again.close()
