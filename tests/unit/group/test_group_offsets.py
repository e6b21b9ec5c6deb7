"""Committed offsets and those of open transactions, in memory and after a restart."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group_offsets import GroupOffsets
from odradek.metadata.offset_store import SqliteOffsetStore

T, U = b"t" * 16, b"u" * 16
PRODUCER = 7
ONE = CommittedOffset(offset=1, leader_epoch=0, metadata="m", commit_timestamp_ms=5, expire_timestamp_ms=9)
TWO = CommittedOffset(offset=2)


@pytest.fixture
def store() -> SqliteOffsetStore:
    return SqliteOffsetStore(":memory:")


@pytest.fixture
def offsets(store: SqliteOffsetStore) -> GroupOffsets:
    return GroupOffsets(store)


def test_a_committed_offset_is_returned(offsets: GroupOffsets) -> None:
    offsets.commit("g", {(T, 0): ONE, (T, 1): TWO})

    assert offsets.offset("g", (T, 0)) == ONE
    assert dict(offsets.of_group("g")) == {(T, 0): ONE, (T, 1): TWO}


def test_a_partition_without_a_commit_has_no_offset(offsets: GroupOffsets) -> None:
    assert offsets.offset("g", (T, 0)) is None
    assert dict(offsets.of_group("g")) == {}


def test_offsets_survive_a_restart(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE, (U, 1): TWO})
    offsets.commit("h", {(T, 0): TWO})

    again = GroupOffsets(store)

    assert again.committed == offsets.committed


def test_pending_offsets_are_invisible(offsets: GroupOffsets) -> None:
    offsets.commit("g", {(T, 0): ONE})

    offsets.add_pending(PRODUCER, "g", {(T, 0): TWO, (T, 1): TWO})

    assert dict(offsets.of_group("g")) == {(T, 0): ONE}
    assert offsets.has_pending("g")
    assert offsets.has_pending("g", (T, 1))
    assert not offsets.has_pending("g", (U, 0))
    assert not offsets.has_pending("h")


def test_a_transaction_that_commits_makes_its_offsets_visible(
    offsets: GroupOffsets, store: SqliteOffsetStore
) -> None:
    offsets.add_pending(PRODUCER, "g", {(T, 0): TWO})

    offsets.complete(PRODUCER, "g", committed=True)

    assert offsets.offset("g", (T, 0)) == TWO
    assert not offsets.has_pending("g")
    assert GroupOffsets(store).committed == {"g": {(T, 0): TWO}}


def test_an_aborted_transaction_leaves_no_offsets(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE})
    offsets.add_pending(PRODUCER, "g", {(T, 0): TWO})

    offsets.complete(PRODUCER, "g", committed=False)

    assert offsets.offset("g", (T, 0)) == ONE
    assert not GroupOffsets(store).open_transactions


def test_pending_offsets_survive_a_restart(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.add_pending(PRODUCER, "g", {(T, 0): ONE})
    offsets.add_pending(PRODUCER, "g", {(T, 1): TWO})

    again = GroupOffsets(store)
    again.complete(PRODUCER, "g", committed=True)

    assert dict(again.of_group("g")) == {(T, 0): ONE, (T, 1): TWO}


def test_ending_a_transaction_twice_is_harmless(offsets: GroupOffsets) -> None:
    offsets.add_pending(PRODUCER, "g", {(T, 0): ONE})
    offsets.complete(PRODUCER, "g", committed=True)
    offsets.commit("g", {(T, 0): TWO})

    offsets.complete(PRODUCER, "g", committed=True)

    assert offsets.offset("g", (T, 0)) == TWO


def test_transactions_of_two_producers_are_independent(offsets: GroupOffsets) -> None:
    offsets.add_pending(PRODUCER, "g", {(T, 0): ONE})
    offsets.add_pending(PRODUCER + 1, "g", {(T, 1): TWO})

    offsets.complete(PRODUCER, "g", committed=True)

    assert dict(offsets.of_group("g")) == {(T, 0): ONE}
    assert offsets.has_pending("g", (T, 1))


def test_a_newer_plain_commit_wins_over_a_pending_one(
    offsets: GroupOffsets, store: SqliteOffsetStore
) -> None:
    offsets.add_pending(PRODUCER, "g", {(T, 0): ONE, (T, 1): ONE})
    offsets.commit("g", {(T, 0): TWO})

    again = GroupOffsets(store)
    for either in (offsets, again):
        either.complete(PRODUCER, "g", committed=True)

    assert dict(offsets.of_group("g")) == dict(again.of_group("g")) == {(T, 0): TWO, (T, 1): ONE}


def test_a_deleted_offset_is_gone(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE, (T, 1): TWO})

    deleted = offsets.delete("g", [(T, 0), (T, 7)])

    assert deleted == 1
    assert dict(offsets.of_group("g")) == dict(GroupOffsets(store).of_group("g")) == {(T, 1): TWO}


def test_deleting_a_group_deletes_all_its_offsets(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE})
    offsets.add_pending(PRODUCER, "g", {(T, 1): ONE})
    offsets.commit("h", {(T, 0): ONE})

    deleted = offsets.delete_group("g")

    assert deleted == 1
    assert not offsets.has_any("g")
    again = GroupOffsets(store)
    assert (list(again.committed), again.open_transactions) == (["h"], {})


def test_the_offsets_of_a_deleted_topic_are_deleted(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE, (U, 0): ONE})
    offsets.commit("h", {(T, 0): ONE})
    offsets.add_pending(PRODUCER, "g", {(T, 1): ONE})

    offsets.drop_topics(lambda topic_id: topic_id == U)

    again = GroupOffsets(store)
    assert offsets.committed == again.committed == {"g": {(U, 0): ONE}}
    assert not offsets.has_pending("g", (T, 1))
    assert list(offsets.groups_of_topic) == [U]
    assert not any(again.open_transactions.values())


def test_a_group_is_announced_with_its_first_offset(store: SqliteOffsetStore) -> None:
    seen: list[str] = []
    offsets = GroupOffsets(store, seen.append)

    offsets.commit("g", {(T, 0): ONE})
    offsets.commit("g", {(T, 1): ONE})
    offsets.add_pending(PRODUCER, "h", {(T, 1): ONE})

    assert seen == ["g", "h"]


def test_stored_groups_are_announced(offsets: GroupOffsets, store: SqliteOffsetStore) -> None:
    offsets.commit("g", {(T, 0): ONE})
    offsets.add_pending(PRODUCER, "h", {(T, 1): ONE})
    seen: list[str] = []

    GroupOffsets(store, seen.append)

    assert seen == ["g", "h"]


def test_created_and_deleted_groups_leave_nothing_behind(offsets: GroupOffsets) -> None:
    offsets.commit("deleted", {(T, 0): CommittedOffset(offset=1), (T, 1): CommittedOffset(offset=1)})
    offsets.add_pending(7, "deleted", {(T, 0): CommittedOffset(offset=2)})
    offsets.commit("expired", {(T, 0): CommittedOffset(offset=1), (T, 1): CommittedOffset(offset=1)})
    offsets.delete("expired", [(T, 0)])
    assert offsets.groups_of_topic == {T: {"deleted", "expired"}}

    offsets.delete_group("deleted")
    offsets.delete("expired", [(T, 1)])

    assert offsets.groups_of_topic == {}


def test_an_aborted_transaction_leaves_nothing_behind(offsets: GroupOffsets) -> None:
    offsets.add_pending(7, "g", {(T, 0): CommittedOffset(offset=2)})

    offsets.complete(7, "g", committed=False)

    assert offsets.groups_of_topic == {}
