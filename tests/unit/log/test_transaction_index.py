"""The aborted transactions in the answers to a consumer."""

from __future__ import annotations

import pytest

from odradek.log.transaction_index import AbortedTransaction, TransactionIndex

EARLY = AbortedTransaction(producer_id=1, first_offset=0, last_offset=9, last_stable_offset=5)
WITHIN = AbortedTransaction(producer_id=2, first_offset=5, last_offset=12, last_stable_offset=13)
LATE = AbortedTransaction(producer_id=1, first_offset=20, last_offset=30, last_stable_offset=31)


def index_of(*entries: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex()
    for entry in entries:
        index.append(entry)
    return index


@pytest.mark.parametrize(
    ("first_offset", "end_offset", "expected"),
    [
        (0, 5, [EARLY]),
        (0, 6, [EARLY, WITHIN]),
        (9, 20, [EARLY, WITHIN]),
        (10, 20, [WITHIN]),
        (13, 20, []),
        (13, 21, [LATE]),
        (31, 99, []),
        (0, 99, [EARLY, WITHIN, LATE]),
    ],
)
def test_entries_that_overlap_a_range_are_found(
    first_offset: int, end_offset: int, expected: list[AbortedTransaction]
) -> None:
    index = index_of(EARLY, WITHIN, LATE)

    found = index.overlapping(first_offset, end_offset)

    assert found == expected


def test_the_search_ends_where_later_entries_start_after_the_range() -> None:
    unreachable = AbortedTransaction(producer_id=9, first_offset=0, last_offset=40, last_stable_offset=41)
    index = index_of(WITHIN, unreachable)

    found = index.overlapping(6, 13)

    assert found == [WITHIN]


def test_entries_before_the_log_start_are_forgotten() -> None:
    index = index_of(EARLY, WITHIN, LATE)

    index.forget_before(12)

    assert list(index) == [WITHIN, LATE]


def test_an_encoded_index_decodes_to_the_same_entries() -> None:
    index = index_of(EARLY, WITHIN, LATE)

    restored = TransactionIndex.decoded(index.encoded())

    assert list(restored) == [EARLY, WITHIN, LATE]
    assert len(index.encoded()) == 3 * 32
