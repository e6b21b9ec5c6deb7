"""A log directory whose disk fails is taken offline; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from errno import EDQUOT, EIO, EMFILE, ENOSPC, EROFS
from itertools import count, islice
from pathlib import Path

import pytest

from odradek.log.cleanable import cleanable
from odradek.log.cleaner import Cleaner
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.testing.clock import MockClock
from odradek.waiting.steps import Pause, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of, values_from
from support.failing_disk import FailingDisk, disk

__all__ = ["disk"]
TOPIC_ID = b"t" * 16


def opened(tmp_path: Path) -> LogManager:
    return LogManager(tmp_path / "one", tmp_path / "two", now_ms=NOW_MS)


@pytest.fixture
def logs(tmp_path: Path) -> LogManager:
    """``t-0`` is in ``one``, ``t-1`` in ``two``; each has a record in two segments."""
    return filled(tmp_path)


def filled(tmp_path: Path) -> LogManager:
    logs = opened(tmp_path)
    for index in range(2):
        log = logs.open("t", index, LogConfig(), TOPIC_ID)
        log.append(batch_of(b"a"), NOW_MS)
        log.roll(NOW_MS)
        log.append(batch_of(b"b"), NOW_MS)
    return logs


def in_directory(logs: LogManager, name: str) -> PartitionLog:
    return next(log for log in logs if log.directory.parent.name == name)


def refusal_of(action: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        action()
    return ErrorCode(refusal.value.code)


def offline_names(logs: LogManager) -> list[str]:
    return [directory.name for directory in logs.offline]


ACTIONS: dict[str, tuple[tuple[str, ...], Callable[[PartitionLog], object]]] = {
    "an append": (("pwritev",), lambda log: log.append(batch_of(b"c"), NOW_MS)),
    "a flush": (("fsync",), lambda log: log.flush()),
    "a roll": (("open",), lambda log: log.roll(NOW_MS)),
    "a read": (("pread",), lambda log: log.read(0, 1_000)),
}


@pytest.mark.parametrize("number", [EIO, EROFS])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_failing_disk_takes_its_directory_offline(
    logs: LogManager,
    disk: FailingDisk,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    action: str,
    number: int,
) -> None:
    calls, run = ACTIONS[action]
    disk.fail(tmp_path / "one", *calls, number=number)

    code = refusal_of(lambda: run(in_directory(logs, "one")))

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert offline_names(logs) == ["one"]
    assert logs.online == [tmp_path / "two"]
    assert in_directory(logs, "one").offline
    assert not in_directory(logs, "two").offline
    (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert vars(line)["directory"] == str(tmp_path / "one")
    assert "restart" in vars(line)["way_back"]
    assert line.exc_info is None


@pytest.mark.parametrize("number", [ENOSPC, EDQUOT, EMFILE])
@pytest.mark.parametrize("action", ["an append", "a roll"])
def test_a_full_disk_is_not_a_broken_one(
    logs: LogManager, disk: FailingDisk, tmp_path: Path, action: str, number: int
) -> None:
    calls, run = ACTIONS[action]
    disk.fail(tmp_path / "one", *calls, number=number)

    code = refusal_of(lambda: run(in_directory(logs, "one")))
    disk.recover()
    in_directory(logs, "one").append(batch_of(b"c"), NOW_MS)

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not logs.offline
    assert [value for _, value in values_from(in_directory(logs, "one"), 1)] == [b"b", b"c"]


def test_a_flush_that_fails_for_lack_of_room_has_lost_pages(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    disk.fail(tmp_path / "one", "fsync", number=ENOSPC)

    refusal_of(in_directory(logs, "one").flush)

    assert offline_names(logs) == ["one"]


def test_an_offline_log_refuses_everything_and_touches_no_file(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    log = in_directory(logs, "one")
    disk.fail(tmp_path / "one")
    refusal_of(log.flush)
    disk.failed.clear()
    flushed: list[ApiError | None] = []

    codes = {
        refusal_of(lambda: log.append(batch_of(b"c"), NOW_MS)),
        refusal_of(lambda: log.read(0, 1_000)),
        refusal_of(log.flush),
    }
    log.when_flushed(flushed.append)
    logs.close()

    assert codes == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert [error and error.code for error in flushed] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert not disk.failed


def test_those_who_wait_are_told(logs: LogManager, disk: FailingDisk, tmp_path: Path) -> None:
    log = in_directory(logs, "one")
    flushed: list[ApiError | None] = []
    heard: list[int] = []
    log.when_flushed(flushed.append)
    log.listeners.add(heard.append)
    disk.fail(tmp_path / "one")

    refusal_of(lambda: log.append(batch_of(b"c"), NOW_MS))

    assert [error and error.code for error in flushed] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert heard == [0]


def test_new_partitions_are_placed_in_the_directories_that_work(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    disk.fail(tmp_path / "one")

    placed = {logs.open("new", index, LogConfig()).directory.parent.name for index in range(3)}

    assert placed == {"two"}
    assert offline_names(logs) == ["one"]


def test_a_partition_of_a_directory_that_fails_at_the_start_is_offline(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    by_name = {log.directory.parent.name: log.name for log in logs}
    logs.close()
    disk.fail(tmp_path / "one")

    again = opened(tmp_path)
    for index in range(2):
        again.open("t", index, LogConfig(), TOPIC_ID, exists=True)
    again.discard_unknown()

    assert {log.name for log in again if log.offline} == {by_name["one"]}
    assert {log.name for log in again if not log.offline} == {by_name["two"]}
    assert [path.name for path in (tmp_path / "two").iterdir()] == [by_name["two"]]


def test_a_start_counts_the_partitions_that_are_offline(
    logs: LogManager, disk: FailingDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stranded = in_directory(logs, "one").name
    logs.close()
    disk.fail(tmp_path / "one")

    opened_all(tmp_path).discard_unknown()

    [line] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert line.getMessage() == "partitions are offline until a start finds their directory"
    assert (vars(line)["partitions"], vars(line)["such_as"]) == (1, stranded)


def test_a_read_that_fails_at_the_start_takes_the_directory_offline(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    by_name = {log.directory.parent.name: log.name for log in logs}
    disk.fail(tmp_path / "one", "pread")

    again = opened(tmp_path)
    for index in range(2):
        again.open("t", index, LogConfig(), TOPIC_ID, exists=True)

    assert {log.name for log in again if log.offline} == {by_name["one"]}
    disk.recover()
    assert len(values_from(in_directory(opened_all(tmp_path), "one"))) == 2


def opened_all(tmp_path: Path) -> LogManager:
    logs = opened(tmp_path)
    for index in range(2):
        logs.open("t", index, LogConfig(), TOPIC_ID, exists=True)
    return logs


def test_a_host_without_a_working_directory_does_not_start(disk: FailingDisk, tmp_path: Path) -> None:
    disk.fail(tmp_path)

    assert refusal_of(lambda: opened(tmp_path)) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_owner_is_told_of_each_directory(logs: LogManager, disk: FailingDisk, tmp_path: Path) -> None:
    left: list[int] = []
    logs.folders.directory_failed = lambda online: left.append(len(online))

    for name in ("one", "two"):
        disk.fail(tmp_path / name)
        refusal_of(in_directory(logs, name).flush)

    assert left == [1, 0]


def test_a_deleted_topic_leaves_its_offline_folder_alone(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    log = in_directory(logs, "one")
    disk.fail(tmp_path / "one")
    refusal_of(log.flush)
    disk.failed.clear()

    logs.delete("t", int(log.name[-1]))

    assert log not in list(logs)
    assert not disk.failed


def test_a_move_to_a_disk_that_fails_ends(logs: LogManager, disk: FailingDisk, tmp_path: Path) -> None:
    log = in_directory(logs, "one")
    key = ("t", int(log.name[-1]))
    move = logs.move(*key, tmp_path / "two", MockClock())
    assert move is not None
    disk.fail(tmp_path / "two", "pwrite", "rename")

    run_steps(move.steps())
    log.append(batch_of(b"c"), NOW_MS)

    assert offline_names(logs) == ["two"]
    assert not logs.moves
    assert not log.moving
    assert log.directory.parent.name == "one"
    assert refusal_of(lambda: logs.move(*key, tmp_path / "two", MockClock())) is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_copy_of_a_log_whose_disk_fails_stays(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    log = in_directory(logs, "one")
    move = logs.move("t", int(log.name[-1]), tmp_path / "two", MockClock())
    assert move is not None
    steps = move.steps()
    next(steps)
    disk.fail(tmp_path / "one", "pread")

    run_steps(steps)

    assert offline_names(logs) == ["one"]
    assert not logs.moves
    assert [path.name for path in (tmp_path / "two").glob("*-future")] == [move.folder.name]


def test_a_missing_file_is_the_trouble_of_one_partition(logs: LogManager, tmp_path: Path) -> None:
    log = in_directory(logs, "one")
    for segment in log.segments:
        segment.release()
        segment.path.unlink()

    code = refusal_of(lambda: log.read(0, 1_000))

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not logs.offline


def test_a_missing_directory_is_offline(logs: LogManager, tmp_path: Path) -> None:
    log = in_directory(logs, "one")
    (tmp_path / "one").rename(tmp_path / "lost")

    refusal_of(lambda: log.roll(NOW_MS))

    assert offline_names(logs) == ["one"]


def everything(logs: LogManager, tmp_path: Path) -> Iterator[Callable[[], object]]:
    """Each kind of work on the log in ``one``, and on the directory."""
    log, clock = in_directory(logs, "one"), MockClock()
    index = int(log.name[-1])
    compacted = replace(LogConfig(), cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
    yield lambda: log.append(batch_of(b"c"), NOW_MS)
    yield lambda: log.read(0, 1_000)
    yield lambda: log.roll(NOW_MS)
    yield log.flush
    yield lambda: log.append(batch_of(b"d"), NOW_MS)
    yield lambda: log.roll(NOW_MS)
    yield lambda: setattr(log, "config", compacted)
    yield lambda: run_steps(Cleaner(cleanable(log, NOW_MS), NOW_MS).steps())
    yield lambda: log.delete_records(1)
    yield lambda: log.delete_expired(NOW_MS)
    yield lambda: logs.open("new", 0, LogConfig(), bytes(16)[1:] + b"n")
    yield lambda: logs.open("new", 1, LogConfig(), bytes(16)[1:] + b"n")
    yield lambda: moved(logs, index, tmp_path / "two", clock)
    yield lambda: moved(logs, index, tmp_path / "one", clock)
    yield lambda: logs.delete("t", index)
    yield logs.discard_unknown
    yield logs.close


def moved(logs: LogManager, index: int, directory: Path, clock: MockClock) -> None:
    move = logs.move("t", index, directory, clock)
    for number, step in enumerate(move.steps() if move is not None else ()):
        if isinstance(step, Pause) or number > 50:
            break
        if callable(step):
            with suppress(OSError):
                step()


def test_whenever_a_disk_fails_only_refusals_escape(tmp_path: Path, disk: FailingDisk) -> None:
    """The disk of ``one`` fails at each of the calls in turn, and works no more."""
    for spared in count():
        folder = tmp_path / str(spared)
        disk.recover()
        logs = filled(folder)
        other = in_directory(logs, "two")
        disk.fail(folder / "one")
        disk.spared, disk.failed = spared, []

        for action in everything(logs, folder):
            with suppress(ApiError):
                action()
            if not other.closed:
                other.append(batch_of(b"x"), NOW_MS)

        assert other.log_end_offset > 10
        if not disk.failed:
            break
        assert offline_names(logs) == ["one"], disk.failed
    assert spared > 30


def test_whenever_a_disk_is_full_nothing_is_lost_and_no_directory_goes(
    tmp_path: Path, disk: FailingDisk
) -> None:
    writes = ("pwrite", "pwritev", "mkdir", "rename", "replace", "utime")
    for spared in count():
        folder = tmp_path / str(spared)
        disk.recover()
        logs = filled(folder)
        log = in_directory(logs, "one")
        index = int(log.name[-1])
        disk.fail(folder / "one", *writes, number=ENOSPC)
        disk.spared, disk.failed = spared, []
        for action in islice(everything(logs, folder), 8):
            with suppress(ApiError):
                action()
        stored = values_from(log)
        disk.broken.clear()

        log.append(batch_of(b"after"), NOW_MS)
        log.release()
        again = opened(folder).open("t", index, LogConfig(), TOPIC_ID, exists=True)

        assert not logs.offline
        assert values_from(again)[:-1] == stored
        assert values_from(again)[-1][1] == b"after"
        if not disk.failed:
            break
    assert spared > 5


def test_whenever_a_disk_fails_during_a_start_the_other_directory_opens(
    tmp_path: Path, disk: FailingDisk
) -> None:
    for spared in count():
        folder = tmp_path / str(spared)
        disk.recover()
        logs = filled(folder)
        names = {log.directory.parent.name: log.name for log in logs}
        if spared % 2:
            logs.close()
        (folder / "one" / "t-7.aaaa-future").mkdir()
        (folder / "one" / "u-0.bbbb-delete").mkdir()
        disk.fail(folder / "one")
        disk.spared, disk.failed = spared, []

        again = opened_all(folder)
        again.discard_unknown()

        assert {log.name for log in again} == set(names.values())
        assert values_from(in_directory(again, "two")) == [(0, b"a"), (1, b"b")]
        if not disk.failed:
            break
        assert offline_names(again) == ["one"] or not in_directory(again, "one").offline
    assert spared > 10


def test_a_partition_is_refused_once_all_directories_are_offline(
    logs: LogManager, disk: FailingDisk, tmp_path: Path
) -> None:
    disk.fail(tmp_path)
    for each in list(logs):
        with suppress(ApiError):
            each.flush()
    disk.recover()

    refusal = refusal_of(lambda: logs.open("new", 0, LogConfig(), TOPIC_ID))

    assert (refusal, logs.online) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
