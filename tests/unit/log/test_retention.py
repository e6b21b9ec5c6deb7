"""Which segments retention removes, and DeleteRecords."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of, values_from

BATCH_BYTES = len(batch_of(b"0"))
CONFIG = LogConfig(segment_bytes=BATCH_BYTES, retention_ms=1_000)
OpenLog = Callable[..., PartitionLog]


def fill(log: PartitionLog, count: int, step_ms: int = 100) -> None:
    """Append one batch, which is one segment, every ``step_ms``."""
    for number in range(count):
        log.append(
            batch_of(b"%d" % number, timestamp_ms=NOW_MS + number * step_ms), NOW_MS + number * step_ms
        )


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize(("later_ms", "left"), [(1_000, 0), (1_001, 1), (1_200, 2), (1_201, 3), (1_901, 10)])
def test_segments_with_only_old_records_are_removed(open_log: OpenLog, later_ms: int, left: int) -> None:
    log = open_log(CONFIG)
    fill(log, 10)

    deleted = log.delete_expired(NOW_MS + later_ms)

    assert (deleted, log.log_start_offset, log.log_end_offset) == (left, left, 10)
    assert bases(log) == list(range(left, 10)) or bases(log) == [10]


def test_the_newest_segment_is_rolled_when_it_has_expired(open_log: OpenLog) -> None:
    log = open_log(CONFIG)
    fill(log, 3)

    log.delete_expired(NOW_MS + 10_000)

    assert (bases(log), log.log_start_offset, log.log_end_offset, log.size_bytes) == ([3], 3, 3, 0)
    assert log.append(batch_of(b"9"), NOW_MS).base_offset == 3
    log.close()
    assert values_from(open_log(CONFIG), 3) == [(3, b"9")]


def test_an_empty_log_has_nothing_to_expire(open_log: OpenLog) -> None:
    log = open_log(CONFIG)

    deleted = log.delete_expired(NOW_MS + 10**12)

    assert (deleted, bases(log)) == (0, [0])


def test_a_timestamp_in_the_future_keeps_later_segments(open_log: OpenLog) -> None:
    log = open_log(replace(CONFIG, message_timestamp_after_max_ms=10**12))
    log.append(batch_of(b"0", timestamp_ms=NOW_MS), NOW_MS)
    log.append(batch_of(b"1", timestamp_ms=NOW_MS + 10**9), NOW_MS)
    log.append(batch_of(b"2", timestamp_ms=NOW_MS), NOW_MS)

    log.delete_expired(NOW_MS + 5_000)

    assert bases(log) == [1, 2]


def test_records_without_timestamps_are_as_old_as_their_file(open_log: OpenLog) -> None:
    log = open_log(CONFIG)
    for _ in range(3):
        log.append(batch_of(b"0", timestamp_ms=-1), NOW_MS)
    for segment, written_ms in zip(log.segments, (NOW_MS, NOW_MS + 500, NOW_MS + 900), strict=True):
        os.utime(segment.path, (written_ms / 1000, written_ms / 1000))

    log.delete_expired(NOW_MS + 1_600)

    assert bases(log) == [2]


def test_no_time_limit_keeps_everything(open_log: OpenLog) -> None:
    log = open_log(replace(CONFIG, retention_ms=-1))
    fill(log, 3)

    deleted = log.delete_expired(NOW_MS + 10**13)

    assert deleted == 0


@pytest.mark.parametrize(
    ("retention_bytes", "kept"), [(0, 0), (1, 1), (BATCH_BYTES, 1), (BATCH_BYTES * 3 - 1, 3), (10**9, 5)]
)
def test_segments_are_removed_while_the_rest_is_large_enough(
    open_log: OpenLog, retention_bytes: int, kept: int
) -> None:
    log = open_log(replace(CONFIG, retention_bytes=retention_bytes, retention_ms=-1))
    fill(log, 5)

    log.delete_expired(NOW_MS)

    assert log.size_bytes == kept * BATCH_BYTES
    assert log.log_start_offset == 5 - kept


@pytest.mark.parametrize("policy", [frozenset({"compact"}), frozenset[str]()])
def test_without_the_policy_delete_nothing_expires(open_log: OpenLog, policy: frozenset[str]) -> None:
    log = open_log(replace(CONFIG, cleanup_policy=policy, retention_bytes=0))
    fill(log, 3)

    deleted = log.delete_expired(NOW_MS + 10**10)

    assert deleted == 0


def test_the_file_of_a_deleted_segment_stays_until_its_delay_is_over(open_log: OpenLog, folder: Path) -> None:
    log = open_log(replace(CONFIG, file_delete_delay_ms=5_000))
    fill(log, 2)

    log.delete_expired(NOW_MS + 1_001)

    assert [(grave.delay_ms, grave.path.name) for grave in log.graves] == [
        (5_000, "00000000000000000000.log.deleted")
    ]
    assert sorted(path.name for path in folder.glob("*0.*") if "snapshot" not in path.name) == [
        "00000000000000000000.log.deleted"
    ]
    log.close()
    open_log(CONFIG)
    assert not list(folder.glob("*.deleted"))


def test_a_segment_that_cannot_be_renamed_stays(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(CONFIG)
    fill(log, 3)

    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", failing)
        with pytest.raises(ApiError) as refusal:
            log.delete_expired(NOW_MS + 1_150)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [value for _, value in values_from(log)] == [b"0", b"1", b"2"]
    assert log.delete_expired(NOW_MS + 1_150) == 2


# DeleteRecords


@pytest.mark.parametrize(("offset", "start", "first"), [(0, 0, 0), (2, 2, 2), (-1, 5, 4), (5, 5, 4)])
def test_records_before_an_offset_are_deleted(open_log: OpenLog, offset: int, start: int, first: int) -> None:
    log = open_log(CONFIG)
    fill(log, 5)

    low_watermark = log.delete_records(offset)

    assert (low_watermark, log.log_start_offset, bases(log)[0]) == (start, start, first)


@pytest.mark.parametrize("offset", [-2, 6, 1 << 60])
def test_records_cannot_be_deleted_to_an_offset_outside_the_log(open_log: OpenLog, offset: int) -> None:
    log = open_log(CONFIG)
    fill(log, 5)

    with pytest.raises(ApiError) as refusal:
        log.delete_records(offset)

    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_start_offset_never_goes_back(open_log: OpenLog) -> None:
    log = open_log(CONFIG)
    fill(log, 5)
    log.delete_records(4)

    low_watermark = log.delete_records(1)

    assert low_watermark == log.log_start_offset == 4


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_offset_inside_a_batch_survives_a_restart(open_log: OpenLog, clean: bool) -> None:
    log = open_log()
    log.append(batch_of(b"a", b"b", b"c", timestamp_ms=NOW_MS), NOW_MS)
    log.delete_records(2)
    if clean:
        log.close()
    else:
        log.release()

    again = open_log()

    assert again.log_start_offset == 2
    with pytest.raises(ApiError):
        again.read(1, 100)
    assert result_of(again.offset_for_time(0)) == (NOW_MS, 2)


def test_a_log_that_lost_more_than_was_deleted_continues_at_its_start_offset(open_log: OpenLog) -> None:
    log = open_log()
    fill(log, 5)
    log.delete_records(5)
    log.release()
    os.truncate(log.segments[0].path, 10)

    again = open_log()

    assert (again.log_start_offset, again.log_end_offset) == (5, 5)
    assert again.append(batch_of(b"9"), NOW_MS).base_offset == 5
    again.close()
    assert values_from(open_log(), 5) == [(5, b"9")]


def test_a_checkpoint_that_cannot_be_written_changes_nothing(open_log: OpenLog, folder: Path) -> None:
    log = open_log()
    fill(log, 3)
    (folder / "log-start-offset-checkpoint.tmp").mkdir()

    with pytest.raises(ApiError) as refusal:
        log.delete_records(2)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_start_offset == 0
    (folder / "log-start-offset-checkpoint.tmp").rmdir()
    assert log.delete_records(2) == 2


@pytest.mark.parametrize("text", ["", "1\n5\n", "0\nmany\n", "\x00" * 20])
def test_an_invalid_checkpoint_is_ignored(open_log: OpenLog, folder: Path, text: str) -> None:
    log = open_log()
    fill(log, 3)
    log.close()
    (folder / "log-start-offset-checkpoint").write_text(text)

    again = open_log()

    assert again.log_start_offset == 0
