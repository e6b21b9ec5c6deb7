from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from odradek.share.acquisition import Acquired, Limits, LogBatch, Wanted
from odradek.share.share_partition import SharePartition
from odradek.share.span import StoredSpan
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

LIMITS = Limits()


def batches(size: int, count: int, first: int = 0) -> list[LogBatch]:
    """Record batches of one size, one after the other."""
    return [LogBatch(first + index * size, first + (index + 1) * size - 1) for index in range(count)]


def acquired(
    partition: SharePartition,
    read: Sequence[LogBatch],
    max_records: int = 500,
    *,
    member: str = "m",
    batch_size: int = 500,
    strict: bool = False,
    limits: Limits = LIMITS,
    now_ms: int = 0,
) -> list[Acquired]:
    """What a fetch gets, from the first offset that it can read."""
    offset = partition.next_fetch_offset(limits)
    if offset is None:
        return []
    seen = [batch for batch in read if batch.last >= offset]
    return partition.acquire(member, seen, Wanted(max_records, batch_size, strict), limits, now_ms)


def say(
    partition: SharePartition,
    kind: int,
    first: int,
    last: int,
    *,
    member: str = "m",
    limits: Limits = LIMITS,
    now_ms: int = 0,
) -> bool:
    """Acknowledge a range, then move the start offset."""
    changed = partition.acknowledge(member, [Acknowledgement(first, last, kind)], limits, now_ms)
    partition.advance()
    return changed


def test_a_fetch_is_rounded_up_to_whole_batches() -> None:
    partition = SharePartition()

    found = acquired(partition, batches(5, 4), max_records=7)

    assert found == [(0, 9, 1)]


def test_a_strict_fetch_cuts_a_batch_and_leaves_the_rest_available() -> None:
    partition, read = SharePartition(), batches(10, 1)

    found = [acquired(partition, read, 4, strict=True) for _ in range(4)]

    assert found == [[(0, 3, 1)], [(4, 7, 1)], [(8, 9, 1)], []]


def test_the_batch_size_splits_between_batches_of_the_log() -> None:
    found = acquired(SharePartition(), batches(5, 4), batch_size=5)

    assert found == [(0, 4, 1), (5, 9, 1), (10, 14, 1), (15, 19, 1)]
    assert acquired(SharePartition(), batches(5, 4), batch_size=7) == [(0, 9, 1), (10, 19, 1)]
    assert acquired(SharePartition(), batches(5, 2), batch_size=2) == [(0, 4, 1), (5, 9, 1)]


def test_a_batch_that_is_accepted_whole_is_one_span_and_leaves_nothing() -> None:
    partition = SharePartition()
    acquired(partition, batches(1, 500))

    assert len(partition.spans) == 1
    assert say(partition, ACCEPT, 0, 499)

    assert (partition.start, partition.next, partition.spans) == (500, 500, [])


def test_single_words_about_records_join_again() -> None:
    partition = SharePartition()
    acquired(partition, batches(100, 1))

    for offset in range(99, 0, -1):
        say(partition, ACCEPT, offset, offset)

    assert [span.stored for span in partition.spans] == [(0, 0, 0, 0), (1, 99, 2, 1)]
    assert partition.done == 99


def test_a_released_record_comes_again_and_the_start_waits_for_it() -> None:
    partition, read = SharePartition(), batches(10, 1)
    acquired(partition, read)
    say(partition, ACCEPT, 0, 4)
    say(partition, RELEASE, 5, 5)

    found = acquired(partition, read, member="other")

    assert found == [(5, 5, 2)]
    assert partition.start == 5


@pytest.mark.parametrize("kind", [REJECT, GAP])
def test_rejected_records_and_gaps_are_done(kind: int) -> None:
    partition, read = SharePartition(), batches(10, 1)
    acquired(partition, read)

    say(partition, kind, 0, 9)

    assert partition.start == 10
    assert acquired(partition, read) == []


def test_a_record_is_archived_at_the_limit_of_deliveries() -> None:
    partition, read, limits = SharePartition(), batches(1, 1), Limits(most_deliveries=2)
    acquired(partition, read, limits=limits)
    say(partition, RELEASE, 0, 0, limits=limits)
    acquired(partition, read, limits=limits)

    say(partition, RELEASE, 0, 0, limits=limits)

    assert partition.start == 1


def test_an_expired_lock_releases() -> None:
    partition, read = SharePartition(), batches(5, 1)
    acquired(partition, read, now_ms=10)
    assert partition.next_deadline_ms == 30_010

    assert not partition.expire(LIMITS, 30_009)
    assert partition.expire(LIMITS, 30_010)

    assert partition.next_deadline_ms is None
    assert acquired(partition, read) == [(0, 4, 2)]


def test_a_renewed_lock_begins_again_and_is_not_stored() -> None:
    partition = SharePartition()
    acquired(partition, batches(5, 1))

    changed = say(partition, RENEW, 1, 2, now_ms=20_000)

    assert not changed
    assert partition.expire(LIMITS, 30_000)
    assert [(span.first, span.last, span.state) for span in partition.spans] == [
        (0, 0, 0), (1, 2, 1), (3, 4, 0),
    ]  # fmt: skip


def test_a_lock_is_not_renewed_where_the_group_forbids_it() -> None:
    partition = SharePartition()
    acquired(partition, batches(5, 1))

    with pytest.raises(ApiError) as caught:
        say(partition, RENEW, 1, 2, limits=Limits(may_renew=False))

    assert caught.value.code is ErrorCode.INVALID_RECORD_STATE


def test_the_records_of_a_member_are_released_and_their_deliveries_stay() -> None:
    partition, read = SharePartition(), batches(5, 2)
    acquired(partition, read, 5)
    acquired(partition, read, 5, member="other")

    assert partition.release("m", LIMITS)

    assert acquired(partition, read, member="third") == [(0, 4, 2)]
    assert not partition.release("m", LIMITS)


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (10, 10, "m", ErrorCode.INVALID_REQUEST),
        (5, 12, "m", ErrorCode.INVALID_REQUEST),
        (4, 5, "m", ErrorCode.INVALID_RECORD_STATE),
        (5, 6, "other", ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_a_refused_acknowledgement_undoes_the_others(
    first: int, last: int, member: str, code: ErrorCode
) -> None:
    partition = SharePartition()
    acquired(partition, batches(10, 1))
    say(partition, RELEASE, 0, 4)
    words = [Acknowledgement(5, 6, ACCEPT)] if member == "m" and first > 5 else []

    with pytest.raises(ApiError) as caught:
        partition.acknowledge(member, [*words, Acknowledgement(first, last, ACCEPT)], LIMITS, 0)

    assert caught.value.code is code
    assert partition.held == 5


def test_words_about_records_before_the_start_are_ignored() -> None:
    partition = SharePartition()
    acquired(partition, batches(10, 1))
    say(partition, ACCEPT, 0, 4)

    assert not say(partition, REJECT, 0, 4)

    assert partition.start == 5


def test_at_the_limit_in_flight_only_released_records_come() -> None:
    partition, read, limits = SharePartition(), batches(50, 4), Limits(in_flight=100)
    acquired(partition, read, 90, limits=limits)
    assert partition.next == 100

    assert acquired(partition, read, limits=limits) == []
    say(partition, RELEASE, 50, 50)

    assert acquired(partition, read, limits=limits) == [(50, 50, 2)]


def test_the_last_batch_may_exceed_the_limit_in_flight() -> None:
    partition, read, limits = SharePartition(), batches(50, 4), Limits(in_flight=100)
    acquired(partition, read, limits=limits)
    say(partition, ACCEPT, 0, 9)

    assert acquired(partition, read, limits=limits) == [(100, 149, 1)]


def attempts(limit: int, size: int, most: int) -> list[Acquired]:
    """What fetches get if every record is released each time."""
    partition, limits = SharePartition(), Limits(most_deliveries=limit)
    found: list[Acquired] = []
    for _ in range(most):
        got = acquired(partition, batches(size, 1), limits=limits)
        found += got
        for first, last, _deliveries in got:
            say(partition, RELEASE, first, last, limits=limits)
    return found


def test_deliveries_are_narrowed_near_the_limit() -> None:
    three = [(0, 3, 1), (0, 3, 2), (0, 0, 3), (1, 1, 3), (2, 2, 3), (3, 3, 3)]
    five = [
        *((0, 15, n) for n in (1, 2, 3)),
        (0, 7, 4),
        *((n, n, 5) for n in range(8)),
        (8, 15, 4),
        (8, 8, 5),
    ]
    ten = [
        *((0, 15, n) for n in range(1, 6)), (0, 7, 6), (0, 3, 7), (0, 1, 8),
        (0, 0, 9), (0, 0, 10), (1, 1, 9), (1, 1, 10), (2, 3, 8),
    ]  # fmt: skip

    assert attempts(3, 4, 9) == three
    assert attempts(5, 16, 14) == five
    assert attempts(10, 16, 13) == ten


def test_a_narrowed_batch_comes_alone() -> None:
    partition, read, limits = SharePartition(), batches(4, 2), Limits(most_deliveries=3)
    for _ in range(2):
        acquired(partition, read, 4, limits=limits)
        say(partition, RELEASE, 0, 3, limits=limits)

    assert acquired(partition, read, limits=limits) == [(0, 0, 3)]


def test_the_log_start_takes_records_away() -> None:
    partition = SharePartition()
    acquired(partition, batches(10, 2))

    assert partition.start_from(8)
    assert not say(partition, ACCEPT, 5, 7)
    assert say(partition, ACCEPT, 5, 9)

    assert (partition.start, partition.held) == (10, 10)


def test_a_log_start_after_everything_begins_anew() -> None:
    partition = SharePartition()
    acquired(partition, batches(10, 1))

    assert partition.start_from(30)

    assert (partition.start, partition.next, partition.next_fetch_offset(LIMITS)) == (30, 30, 30)
    assert not partition.start_from(30)


def test_a_gap_between_batches_is_done_and_one_within_is_acquired() -> None:
    partition = SharePartition()
    acquired(partition, batches(5, 1))

    found = acquired(partition, [LogBatch(8, 9), LogBatch(12, 14)])
    say(partition, ACCEPT, 0, 4)

    assert found == [(8, 14, 1)]
    assert partition.start == 8


def test_released_records_that_compaction_has_deleted_are_done() -> None:
    partition = SharePartition()
    acquired(partition, batches(5, 2))
    partition.release("m", LIMITS)

    found = acquired(partition, [LogBatch(5, 9)])

    assert found == [(5, 9, 2)]
    partition.advance()
    assert partition.start == 5


def test_aborted_batches_are_archived() -> None:
    partition = SharePartition()

    found = acquired(partition, [LogBatch(0, 1), LogBatch(2, 3, aborted=True), LogBatch(4, 4)])

    assert found == [(0, 1, 1), (4, 4, 1)]
    assert partition.done == 2


def test_a_restart_keeps_what_was_said_and_loses_what_is_held() -> None:
    partition, read = SharePartition(), batches(10, 1)
    acquired(partition, read)
    say(partition, ACCEPT, 0, 2)
    say(partition, REJECT, 4, 4)
    say(partition, RELEASE, 5, 5)

    again = SharePartition.restored(partition.start, partition.stored())

    assert acquired(again, read) == [(3, 3, 1), (5, 5, 2), (6, 9, 1)]


def test_stored_spans_need_not_begin_at_the_start() -> None:
    partition = SharePartition.restored(2, [StoredSpan(5, 5, 2, 1)])

    assert acquired(partition, batches(10, 1, first=0)) == [(2, 4, 1), (6, 9, 1)]
