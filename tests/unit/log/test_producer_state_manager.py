"""Idempotent producers: windows of five, epochs, wrapping sequences, expiry, snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.log.producer_ids import ProducerIdConfig
from odradek.log.producer_snapshot import (
    decode_snapshot,
    encode_snapshot,
    load_snapshot,
    save_snapshot,
    snapshot_offsets,
)
from odradek.log.producer_state_manager import ProducerStateManager
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import RecordBatchHeader, parse_header
from support.batches import NOW_MS, batch_of

PRODUCER = 7
LAST = 0x7FFFFFFF

EXPIRATION_MS = ProducerIdConfig().expiration_ms


def header(
    base_sequence: int, count: int = 1, epoch: int = 0, producer_id: int = PRODUCER
) -> RecordBatchHeader:
    return parse_header(batch_of(*[b"x"] * count, producer=(producer_id, epoch, base_sequence)))


def written(*headers: RecordBatchHeader) -> ProducerStateManager:
    """A manager that has seen these batches, from offset 100 on."""
    manager = ProducerStateManager()
    offset = 100
    for each in headers:
        manager.appended(each, offset, NOW_MS)
        offset += each.record_count
    return manager


def refusal_of(manager: ProducerStateManager, wanted: RecordBatchHeader) -> ErrorCode:
    """The log's check: NONE for a batch that may be written or is a duplicate."""
    if manager.duplicate_of(wanted) is not None:
        return ErrorCode.NONE
    try:
        manager.check(wanted)
    except ApiError as refusal:
        return refusal.code
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (header(3), ErrorCode.NONE),
        (header(4), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(0, epoch=0), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(0, epoch=2), ErrorCode.NONE),
        (header(1, epoch=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(3, epoch=2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (header(99, producer_id=8), ErrorCode.NONE),
    ],
    ids=[
        "the next",
        "a gap",
        "the end of a batch",
        "inside a batch",
        "the start of a batch",
        "a new epoch at 0",
        "a new epoch after 0",
        "a new epoch going on",
        "an unknown producer",
    ],
)
def test_the_next_sequence_or_a_new_epoch_at_0_may_follow(wanted: RecordBatchHeader, code: ErrorCode) -> None:
    manager = written(header(0, 3))

    found = refusal_of(manager, wanted)

    assert found == code


def test_an_older_epoch_is_fenced() -> None:
    manager = written(header(0, epoch=5))

    code = refusal_of(manager, header(1, epoch=4))

    assert code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_continue_at_0_after_the_largest() -> None:
    manager = written(header(LAST - 1, 2))

    codes = [refusal_of(manager, header(0)), refusal_of(manager, header(1))]

    assert codes == [ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_batch_may_contain_the_largest_sequence_and_0() -> None:
    manager = written(header(LAST, 3))

    code = refusal_of(manager, header(2))

    assert code == ErrorCode.NONE
    assert manager.duplicate_of(header(LAST, 3)) is not None


def test_the_last_five_batches_are_remembered() -> None:
    manager = written(*(header(sequence) for sequence in range(6)))

    found = [manager.duplicate_of(header(sequence)) for sequence in range(6)]

    assert [batch and batch.first_offset for batch in found] == [None, 101, 102, 103, 104, 105]
    assert refusal_of(manager, header(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_identical_sequences_are_a_duplicate() -> None:
    manager = written(header(0, 3), header(3, 2))

    overlaps = [header(0, 2), header(1, 2), header(0, 5), header(3, 3), header(0, 3, epoch=1)]

    assert [manager.duplicate_of(each) for each in overlaps] == [None] * 5


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    manager = written(header(0, epoch=0), header(0, epoch=1))

    batch = manager.duplicate_of(header(0, epoch=1))

    assert batch is not None
    assert batch.first_offset == 101
    assert refusal_of(manager, header(0, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_silent_producer_is_forgotten_after_a_day() -> None:
    manager = written(header(0))
    early = manager.expire(NOW_MS + EXPIRATION_MS - 1)

    expired = manager.expire(NOW_MS + EXPIRATION_MS)

    assert (early, expired) == (0, 1)
    assert refusal_of(manager, header(99)) == ErrorCode.NONE


def test_a_snapshot_holds_everything() -> None:
    producers = written(*(header(sequence) for sequence in range(9)), header(4, producer_id=9)).producers

    restored = decode_snapshot(encode_snapshot(producers))

    assert restored is not None
    assert restored[0] == producers


@pytest.mark.parametrize("position", [0, 3, 7, 9, 12, 40, -1])
def test_a_damaged_snapshot_is_not_read(position: int) -> None:
    data = bytearray(encode_snapshot(written(header(0), header(1)).producers))
    data[position] ^= 0xFF

    restored = decode_snapshot(bytes(data))

    assert restored is None


@pytest.mark.parametrize("kept_bytes", [0, 9, 10, 30, -1])
def test_a_cut_snapshot_is_not_read(kept_bytes: int) -> None:
    data = encode_snapshot(written(header(0), header(1)).producers)[:kept_bytes]

    restored = decode_snapshot(data)

    assert restored is None


def test_the_newest_readable_snapshot_up_to_the_end_is_loaded(tmp_path: Path) -> None:
    old, new = written(header(0)).producers, written(header(0), header(1)).producers
    save_snapshot(tmp_path, 100, {})
    save_snapshot(tmp_path, 101, old)
    save_snapshot(tmp_path, 102, new)
    (tmp_path / f"{102:020d}.snapshot").write_bytes(b"damaged")
    (tmp_path / f"{500:020d}.snapshot").write_bytes(encode_snapshot(new))

    found = load_snapshot(tmp_path, 200, snapshot_offsets(each.name for each in tmp_path.iterdir()))

    assert found[:2] == (101, old)
    assert snapshot_offsets(each.name for each in tmp_path.iterdir()) == [101]


def test_without_a_snapshot_all_batches_are_read(tmp_path: Path) -> None:
    end_offset = 10

    found = load_snapshot(tmp_path, end_offset, snapshot_offsets(each.name for each in tmp_path.iterdir()))

    assert found[:2] == (0, {})
