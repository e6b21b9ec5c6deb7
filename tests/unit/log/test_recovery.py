"""The contents of a log after a crash, a damaged file or a lost index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of
from odradek.wire.limits import INT32_MAX
from support.batches import NOW_MS, altered, batch_of, values_from

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
OpenLog = Callable[..., PartitionLog]


def fill(log: PartitionLog, count: int) -> None:
    for number in range(count):
        log.append(batch_of(b"%d" % number, timestamp_ms=NOW_MS + number), NOW_MS + number)


def numbers(log: PartitionLog, offset: int = 0) -> list[int]:
    return [int(value or b"-1") for _, value in values_from(log, offset)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("count", [0, 1, 25, 100])
def test_every_record_survives_a_restart(open_log: OpenLog, clean: bool, count: int) -> None:
    log = open_log(SMALL)
    fill(log, count)
    before = [(segment.base_offset, segment.size_bytes) for segment in log.segments]
    if clean:
        log.close()
    else:
        log.release()

    again = open_log(SMALL)

    assert [(segment.base_offset, segment.size_bytes) for segment in again.segments] == before
    assert (again.log_start_offset, again.log_end_offset) == (0, count)
    assert numbers(again) == list(range(count))
    assert result_of(again.max_timestamp_offset()) == ((NOW_MS + count - 1, count - 1) if count else None)
    assert [result_of(again.offset_for_time(NOW_MS + number)) for number in range(0, count, 7)] == [
        (NOW_MS + number, number) for number in range(0, count, 7)
    ]


@pytest.mark.parametrize("clean", [True, False])
def test_appends_continue_after_a_restart(open_log: OpenLog, clean: bool) -> None:
    log = open_log(SMALL)
    fill(log, 30)
    if clean:
        log.close()
    else:
        log.release()

    again = open_log(SMALL)
    for number in range(30, 60):
        again.append(batch_of(b"%d" % number), NOW_MS)

    assert numbers(again) == list(range(60))
    again.release()
    assert numbers(open_log(SMALL)) == list(range(60))


def test_a_cleanly_closed_log_is_not_read_again(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log()
    for number in range(300):
        log.append(batch_of(b"x" * 1_000, b"%d" % number), NOW_MS)
    log.close()
    read_bytes = 0
    pread = __import__("os").pread

    def counting(descriptor: int, length: int, position: int) -> bytes:
        nonlocal read_bytes
        data: bytes = pread(descriptor, length, position)
        read_bytes += len(data)
        return data

    monkeypatch.setattr("os.pread", counting)

    again = open_log()

    assert again.log_end_offset == 600
    assert 0 < read_bytes < 20_000 < again.size_bytes


def test_a_torn_tail_after_a_clean_close_is_cut(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    fill(log, 25)
    path, size_bytes = log.segments[-1].path, log.segments[-1].size_bytes
    log.close()
    with path.open("ab") as file:
        file.write(batch_of(b"torn")[:-1])

    again = open_log(SMALL)

    assert numbers(again) == list(range(25))
    assert path.stat().st_size == size_bytes


def test_a_closed_log_that_lost_its_tail_is_read_up_to_the_cut(open_log: OpenLog) -> None:
    log = open_log(LogConfig(index_interval_bytes=300))
    fill(log, 25)
    path, size_bytes = log.segments[-1].path, log.size_bytes
    log.close()
    with path.open("r+b") as file:
        file.truncate(size_bytes // 2)

    again = open_log()

    left = numbers(again)
    assert left == list(range(len(left)))
    assert 10 <= len(left) <= 12


def test_a_batch_too_far_from_the_start_of_its_segment_is_cut(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    path = log.segments[-1].path
    log.release()
    far = altered(batch_of(b"x"), last_offset_delta=INT32_MAX - 1)
    further = altered(batch_of(b"y"), base_offset=INT32_MAX, last_offset_delta=1)
    path.write_bytes(far + further)

    again = open_log(SMALL)

    assert again.log_end_offset == INT32_MAX
    assert again.append(batch_of(b"next", timestamp_ms=NOW_MS), NOW_MS).base_offset == INT32_MAX
    again.close()
    assert open_log(SMALL).log_end_offset == INT32_MAX + 1


def test_a_damaged_older_segment_leaves_a_gap(open_log: OpenLog) -> None:
    log = open_log(SMALL)
    fill(log, 60)
    damaged, following = log.segments[1], log.segments[2]
    log.release()
    with damaged.path.open("r+b") as file:
        file.truncate(damaged.size_bytes - 1)

    again = open_log(SMALL)

    lost = following.base_offset - 1
    assert numbers(again) == [number for number in range(60) if number != lost]
    assert numbers(again, lost) == list(range(following.base_offset, 60))


@pytest.mark.parametrize("damage", ["remove", "shorten", "garble"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_lost_index_is_rebuilt(open_log: OpenLog, suffix: str, damage: str) -> None:
    log = open_log(SMALL)
    fill(log, 60)
    path = log.segments[1].stem.with_suffix(suffix)
    log.release()
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if damage == "shorten" else b"\x7f" * 8 + bytes(len(content) - 8))

    again = open_log(SMALL)

    assert numbers(again) == list(range(60))
    assert [result_of(again.offset_for_time(NOW_MS + number)) for number in range(60)] == [
        (NOW_MS + number, number) for number in range(60)
    ]


def test_a_crash_right_after_rolling_loses_nothing(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)
    fill(log, 20)
    log.roll(NOW_MS)
    log.release()
    for path in [*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")]:
        path.unlink()

    again = open_log(SMALL)

    assert again.log_end_offset == 20
    assert numbers(again) == list(range(20))


def test_unknown_files_in_the_folder_are_ignored(open_log: OpenLog, folder: Path) -> None:
    log = open_log(SMALL)
    fill(log, 5)
    log.release()
    for name in ("notes.log", "old.snapshot", f"{0:020d}.index.tmp", ".hidden"):
        (folder / name).write_bytes(b"junk")

    again = open_log(SMALL)

    assert numbers(again) == list(range(5))


def damaged_log(open_log: OpenLog, *, segments: int = 3) -> list[Path]:
    """A log that was closed properly, as paths of its segments."""
    log = open_log(SMALL)
    while len(log.segments) < segments:
        log.append(batch_of(b"1"), NOW_MS)
    log.append(batch_of(b"1"), NOW_MS)
    log.close()
    return [each.path for each in log.segments]


def test_a_healthy_log_reports_nothing(open_log: OpenLog, caplog: pytest.LogCaptureFixture) -> None:
    damaged_log(open_log)

    open_log(SMALL).release()

    assert caplog.records == []


def test_a_missing_segment_is_logged(open_log: OpenLog, caplog: pytest.LogCaptureFixture) -> None:
    first, middle, last = damaged_log(open_log)
    middle.unlink()

    log = open_log(SMALL)

    missing, gap = caplog.records
    assert (missing.levelname, gap.levelname) == ("WARNING", "WARNING")
    assert vars(missing)["segment"] == str(middle)
    assert (vars(gap)["first"], vars(gap)["last"]) == (int(middle.stem), int(last.stem) - 1)
    assert [each.path for each in log.segments] == [first, last]
    assert not middle.with_suffix(".index").exists()


def test_a_missing_newest_segment_is_logged(open_log: OpenLog, caplog: pytest.LogCaptureFixture) -> None:
    *_, last = damaged_log(open_log)
    last.unlink()

    open_log(SMALL)

    [missing] = caplog.records
    assert vars(missing)["segment"] == str(last)


@pytest.mark.parametrize("which", [0, 1, -1])
def test_an_emptied_segment_is_logged(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture, which: int
) -> None:
    emptied = damaged_log(open_log)[which]
    emptied.write_bytes(b"")

    open_log(SMALL)

    assert vars(caplog.records[0])["segment"] == str(emptied)
    assert "empty" in caplog.records[0].message


def test_gaps_of_a_compacted_log_are_not_logged(open_log: OpenLog, caplog: pytest.LogCaptureFixture) -> None:
    _, middle, _ = damaged_log(open_log)
    for path in (middle, middle.with_suffix(".index"), middle.with_suffix(".timeindex")):
        path.unlink()

    open_log(replace(SMALL, cleanup_policy=frozenset({"compact"})))

    assert caplog.records == []


def test_the_index_of_a_deleted_segment_is_removed_silently(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    first, *_ = damaged_log(open_log)
    first.rename(first.with_name(first.name + ".deleted"))

    log = open_log(SMALL)

    assert caplog.records == []
    assert log.log_start_offset > 0
