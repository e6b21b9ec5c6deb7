"""Transactions on one partition: the last stable offset, markers, aborted transactions, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.log.control_batch import TransactionMarker, marker_of
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader, build_batch, record_batches
from support.batches import NOW_MS, batch_of

ONE, TWO = 1, 2


def taken(_header: RecordBatchHeader) -> None:
    """Accept every partition into every transaction."""


def write(log: PartitionLog, producer_id: int, sequence: int = 0, *, count: int = 1, epoch: int = 0) -> int:
    batch = batch_of(*[b"v"] * count, producer=(producer_id, epoch, sequence), transactional=True)
    return log.append(batch, NOW_MS, join_transaction=taken).base_offset


def end(log: PartitionLog, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
    return log.append_marker(TransactionMarker(producer_id, epoch, committed), NOW_MS)


def refusal_of(log: PartitionLog, batch: bytes) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        log.append(batch, NOW_MS, join_transaction=taken)
    return refused.value.code


def test_without_transactions_every_record_is_stable(log: PartitionLog) -> None:
    log.append(batch_of(b"a", b"b"), NOW_MS)

    stable = log.last_stable_offset

    assert stable == 2


def test_records_after_an_open_transaction_are_not_stable(log: PartitionLog) -> None:
    log.append(batch_of(b"a"), NOW_MS)
    write(log, ONE)

    log.append(batch_of(b"b"), NOW_MS)

    assert log.last_stable_offset == 1
    assert log.high_watermark == 3


def test_the_oldest_open_transaction_decides(log: PartitionLog) -> None:
    write(log, ONE)
    write(log, TWO)

    end(log, ONE, committed=True)

    assert log.last_stable_offset == 1


def test_after_the_last_marker_every_record_is_stable(log: PartitionLog) -> None:
    write(log, ONE)
    write(log, TWO)
    end(log, TWO, committed=True)

    end(log, ONE, committed=True)

    assert log.last_stable_offset == log.log_end_offset == 4


def test_aborted_transactions_are_listed_with_their_stable_offset(log: PartitionLog) -> None:
    write(log, ONE, count=2)
    write(log, TWO)
    end(log, TWO, committed=False)

    end(log, ONE, committed=False)

    assert log.aborted_transactions(0, 99) == [(TWO, 2, 3, 0), (ONE, 0, 4, 5)]


def test_committed_and_empty_transactions_are_not_listed(log: PartitionLog) -> None:
    write(log, ONE)
    end(log, ONE, committed=True)

    end(log, TWO, committed=False)

    assert log.aborted_transactions(0, 99) == []


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_a_control_batch_of_one_record(log: PartitionLog, committed: bool) -> None:
    write(log, ONE, epoch=3)

    end(log, ONE, committed=committed, epoch=4)

    header, batch = next(record_batches(log.read(1, 1 << 20)))
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert marker_of(batch, header) == TransactionMarker(ONE, 4, committed)


def test_a_control_batch_of_another_type_is_no_marker() -> None:
    batch = build_batch([Record(b"\x00\x00\x00\x05", b"\x00" * 6)], producer_id=1, control=True)
    (header, view), *_ = record_batches(batch)

    found = marker_of(view, header)

    assert found is None


def test_listeners_hear_of_markers(log: PartitionLog) -> None:
    write(log, ONE)
    heard: list[int] = []
    log.listeners.add(heard.append)

    end(log, ONE, committed=True)

    assert heard == [len(log.read(1, 1 << 20))]


def test_a_batch_outside_the_open_transaction_is_refused(log: PartitionLog) -> None:
    write(log, ONE)

    code = refusal_of(log, batch_of(b"x", producer=(ONE, 0, 1)))

    assert code is ErrorCode.INVALID_TXN_STATE


def test_without_a_join_the_first_batch_is_refused(log: PartitionLog) -> None:
    batch = batch_of(b"x", producer=(ONE, 0, 0), transactional=True)

    with pytest.raises(ApiError) as refused:
        log.append(batch, NOW_MS)

    assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_only_the_first_batch_of_a_transaction_joins_it(log: PartitionLog) -> None:
    asked: list[int] = []
    for sequence in range(3):
        batch = batch_of(b"x", producer=(ONE, 0, sequence), transactional=True)

        log.append(batch, NOW_MS, join_transaction=lambda header: asked.append(header.base_sequence))

    assert asked == [0]


def test_a_marker_of_a_new_epoch_fences_the_old_one(log: PartitionLog) -> None:
    write(log, ONE)
    end(log, ONE, committed=False, epoch=1)

    code = refusal_of(log, batch_of(b"x", producer=(ONE, 0, 1), transactional=True))

    assert code is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(("sequence", "code"), [(1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_after_a_marker_of_a_new_epoch_sequences_start_at_0(
    log: PartitionLog, sequence: int, code: ErrorCode
) -> None:
    write(log, ONE)
    end(log, ONE, committed=True, epoch=1)

    refused = refusal_of(log, batch_of(b"x", producer=(ONE, 1, sequence), transactional=True))

    assert refused is code
    assert write(log, ONE, 0, epoch=1) == 2


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        (TransactionMarker(ONE, 4, committed=True), ErrorCode.INVALID_PRODUCER_EPOCH),
        (TransactionMarker(ONE, 5, True, coordinator_epoch=-2), ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_marker_of_an_old_epoch_is_refused(
    log: PartitionLog, marker: TransactionMarker, code: ErrorCode
) -> None:
    write(log, ONE, epoch=5)

    with pytest.raises(ApiError) as refused:
        log.append_marker(marker, NOW_MS)

    assert refused.value.code is code
    assert log.log_end_offset == 1


def test_a_producer_with_an_open_transaction_does_not_expire(log: PartitionLog) -> None:
    write(log, ONE)
    write(log, TWO)
    end(log, TWO, committed=True)

    log.producers.expire(NOW_MS + 10 * 86_400_000)

    assert list(log.producers.producers) == [ONE]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("segment_bytes", [1 << 20, 200], ids=["one segment", "many segments"])
def test_transactions_survive_a_restart(folder: Path, closed: bool, segment_bytes: int) -> None:
    log = PartitionLog(folder, LogConfig(segment_bytes=segment_bytes), NOW_MS)
    for sequence in range(4):
        write(log, ONE, sequence)
        end(log, ONE, committed=sequence % 2 == 0)
    write(log, TWO)
    write(log, ONE, 4)
    before = (log.last_stable_offset, log.aborted_transactions(0, 99), log.producers.producers)
    log.close() if closed else log.release()

    again = PartitionLog(folder, LogConfig(segment_bytes=segment_bytes), NOW_MS)

    assert (again.last_stable_offset, again.aborted_transactions(0, 99), again.producers.producers) == before
    end(again, TWO, committed=False)
    assert again.last_stable_offset == 9
    assert len(again.aborted_transactions(0, 99)) == 3


def test_the_first_batch_that_is_no_marker(log: PartitionLog) -> None:
    log.append(batch_of(b"a", b"b"), NOW_MS)
    write(log, ONE)
    end(log, ONE, committed=True)
    log.roll(NOW_MS)
    end(log, ONE, committed=False)
    found = [log.data_batch(offset) for offset in (0, 1, 2, 3)]

    assert [each and each.base_offset for each in found] == [0, 0, 2, None]
    log.append(batch_of(b"c"), NOW_MS)
    after = log.data_batch(3)
    assert after is not None
    assert after.base_offset == 5
    bounded = log.data_batch(3, 2)
    assert bounded is not None
    assert bounded.is_control
