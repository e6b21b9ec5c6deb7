"""Moving a partition to another directory, with interruptions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from errno import ENOSPC
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from odradek.log.cleanable import cleanable
from odradek.log.cleaner import Cleaner
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.log.replica_move import CHUNK_BYTES, MOVED_MARK, RETRY_MS, ReplicaMove
from odradek.testing.clock import MockClock
from odradek.waiting.steps import Pause, result_of, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of, values_from
from support.failing_disk import Killed, kill_at

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
ID = bytes(range(16))
OPERATIONS = ("rename", "truncate", "pwritev", "pwrite", "unlink", "mkdir", "rmdir")


def manager_of(path: Path) -> LogManager:
    return LogManager(path / "one", path / "two", now_ms=NOW_MS)


def filled(manager: LogManager, batches: int, config: LogConfig = SMALL) -> PartitionLog:
    log = manager.open("pushes", 0, config, ID)
    for number in range(batches):
        log.append(batch_of(b"%d" % number, timestamp_ms=NOW_MS + number, producer=(1, 0, number)), NOW_MS)
    return log


def begin(manager: LogManager, clock: MockClock | None = None) -> ReplicaMove:
    move = manager.move("pushes", 0, manager.directories[1], clock or MockClock())
    assert move is not None
    return move


def numbers(log: PartitionLog) -> list[int]:
    return [int(value or b"-1") for _, value in values_from(log, log.log_start_offset)]


@pytest.mark.parametrize("batches", [0, 1, 100])
def test_a_log_moves_with_all_its_contents(tmp_path: Path, batches: int) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, batches)
    before = [(segment.base_offset, segment.size_bytes) for segment in log.segments]

    run_steps(begin(manager).steps())

    assert log.directory == tmp_path / "two" / "pushes-0"
    assert [(segment.base_offset, segment.size_bytes) for segment in log.segments] == before
    assert numbers(log) == list(range(batches))
    assert [path.name for path in (tmp_path / "one").iterdir()] == []
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["pushes-0"]
    assert result_of(log.offset_for_time(NOW_MS + 50)) == ((NOW_MS + 50, 50) if batches == 100 else None)


@pytest.mark.parametrize("clean", [True, False])
def test_a_moved_log_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 50)
    log.delete_records(7)
    run_steps(begin(manager).steps())
    log.append(batch_of(b"50", producer=(1, 0, 50)), NOW_MS)
    manager.close() if clean else log.release()

    again = manager_of(tmp_path).open("pushes", 0, SMALL, ID)

    assert again.directory == tmp_path / "two" / "pushes-0"
    assert numbers(again) == list(range(7, 51))
    assert again.producers.producers[1].last_sequence == 50


def test_appends_continue_during_a_move_and_listeners_stay(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    heard: list[int] = []
    log.listeners.add(heard.append)
    steps = begin(manager).steps()

    appended = 200
    for _ in steps:
        log.append(batch_of(b"%d" % appended), NOW_MS)
        appended += 1
    log.append(batch_of(b"%d" % appended), NOW_MS)

    assert log.directory.parent == tmp_path / "two"
    assert numbers(log) == list(range(appended + 1))
    assert len(heard) == appended + 1 - 200


def test_a_copy_that_falls_behind_takes_over_after_a_few_flushes(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 10, LogConfig())
    value = b"x" * (CHUNK_BYTES // 2 + 1_000)

    for pieces, step in enumerate(begin(manager).steps()):
        if callable(step):
            step()
            for _ in range(3):
                log.append(batch_of(value), NOW_MS)
        if pieces > 1_000:
            break

    assert log.directory.parent == tmp_path / "two"


def test_records_deleted_by_retention_during_a_move_do_not_come_back(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    steps = begin(manager).steps()
    for _ in islice(steps, 4):
        pass

    log.delete_records(150)
    run_steps(steps)

    assert log.directory.parent == tmp_path / "two"
    assert numbers(log) == list(range(150, 200))
    assert log.segments[0].base_offset > 100
    assert min(path.name for path in log.directory.glob("*.log")) == log.segments[0].path.name


def test_compaction_waits_for_a_move(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    config = LogConfig(segment_bytes=2_000, cleanup_policy=frozenset({"compact"}))
    log = filled(manager, 100, config)
    cleaning = Cleaner(cleanable(log, NOW_MS), NOW_MS).steps()
    for _ in islice(cleaning, 20):
        pass
    moving = begin(manager).steps()
    next(moving)

    run_steps(cleaning)
    run_steps(moving)

    assert numbers(log) == list(range(100))
    run_steps(Cleaner(cleanable(log, NOW_MS), NOW_MS).steps())
    assert numbers(log)[-1] == 99
    assert len(numbers(log)) < 100


def test_a_move_reports_its_size_and_lag(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    move = begin(manager)
    before = (move.size_bytes, move.offset_lag)

    for _ in islice(move.steps(), 10):
        pass

    assert before == (0, 200)
    assert 0 < move.size_bytes < log.size_bytes
    assert 0 < move.offset_lag < 200


class EverySecond:
    """Allows a move to continue on every second check."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.copied_bytes = 0.0

    def is_quota_exceeded(self, now_ms: int) -> bool:
        self.asked.append(now_ms)
        return len(self.asked) % 2 == 0

    def record(self, value: float, now_ms: int) -> None:
        self.copied_bytes += value


def test_a_throttle_slows_the_copy(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    clock, throttle = MockClock(), EverySecond()
    manager.throttle = throttle

    steps = list(begin(manager, clock).steps())

    assert sum(isinstance(step, Pause) for step in steps) == len(throttle.asked) // 2 > 5
    assert set(throttle.asked) == {clock.monotonic_ms()}
    assert throttle.copied_bytes == log.size_bytes
    assert numbers(log) == list(range(200))


def test_moving_back_cancels_a_move(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    steps = begin(manager).steps()
    for _ in islice(steps, 10):
        pass

    again = manager.move("pushes", 0, manager.directories[0], MockClock())
    run_steps(steps)

    assert again is None
    assert not manager.moves
    assert log.directory.parent == tmp_path / "one"
    assert [path.name for path in (tmp_path / "two").iterdir()] == []
    assert not log.moving


def test_the_end_of_a_cancelled_move_does_not_allow_compaction_during_the_next(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 200)
    first = begin(manager).steps()
    next(first)
    manager.move("pushes", 0, manager.directories[0], MockClock())
    second = begin(manager).steps()
    next(second)

    run_steps(first)

    assert log.moving
    run_steps(second)
    assert numbers(log) == list(range(200))
    assert not log.moving


def test_a_flush_that_a_move_overtakes_is_repeated(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 10)
    told: list[tuple[str, ApiError | None]] = []
    log.when_flushed(lambda error: told.append((log.directory.parent.name, error)))
    flushing = log.flushing()
    next(flushing)
    move = begin(manager).steps()
    while log.directory.parent.name == "one":
        next(move)

    next(flushing)

    assert (told, log.recovery_point) == ([], 0)
    with pytest.raises(StopIteration):
        next(flushing)
    assert (told, log.recovery_point) == ([("two", None)], 10)
    run_steps(move)


def test_deleting_the_topic_ends_a_move(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    filled(manager, 200)
    steps = begin(manager).steps()
    for _ in islice(steps, 10):
        pass

    manager.delete("pushes", 0)
    run_steps(steps)

    assert [*(tmp_path / "one").iterdir(), *(tmp_path / "two").iterdir()] == []


def test_a_move_that_fills_the_disk_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 100)
    steps = begin(manager).steps()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        pause = next(step for step in steps if isinstance(step, Pause))
    left = list((tmp_path / "two").iterdir())
    run_steps(steps)

    assert (pause, left) == (Pause(RETRY_MS), [])
    assert log.directory.parent == tmp_path / "two"
    assert numbers(log) == list(range(100))


def test_an_unknown_directory_is_refused(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    filled(manager, 1)

    with pytest.raises(ApiError) as refusal:
        manager.move("pushes", 0, tmp_path / "three", MockClock())

    assert refusal.value.code == ErrorCode.LOG_DIR_NOT_FOUND


def test_a_name_that_is_too_long_for_a_copy_is_refused(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    manager.open("x" * 249, 0, SMALL, ID)

    for directory in (manager.directories[1], tmp_path / "other"):
        for partition in (0, 1):
            with pytest.raises(ApiError) as refusal:
                manager.move("x" * 249, partition, directory, MockClock())

            assert refusal.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_partition_is_created_in_the_wanted_directory(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    manager.move("pushes", 0, manager.directories[1], MockClock())

    log = manager.open("pushes", 0, SMALL, ID)

    assert log.directory.parent == tmp_path / "two"


def test_an_interrupted_move_starts_again_after_a_restart(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = filled(manager, 100)
    for _ in islice(begin(manager).steps(), 10):
        pass
    log.release()

    again = manager_of(tmp_path)
    log = again.open("pushes", 0, SMALL, ID)
    again.resume_moves(MockClock())
    for move in again.moves.values():
        run_steps(move.steps())

    assert log.directory.parent == tmp_path / "two"
    assert numbers(log) == list(range(100))


def test_new_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)

    folders = [manager.open("pushes", index, SMALL).directory.parent.name for index in range(4)]

    assert folders == ["one", "two", "one", "two"]


def test_a_log_is_found_in_its_directory(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    for index in range(4):
        manager.open("pushes", index, SMALL).append(batch_of(b"%d" % index), NOW_MS)
    manager.close()

    again = LogManager(tmp_path / "two", tmp_path / "one", now_ms=NOW_MS)

    assert [numbers(again.open("pushes", index, SMALL)) for index in range(4)] == [[0], [1], [2], [3]]


def test_a_log_in_two_directories_is_not_opened(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    (tmp_path / "one" / "pushes-0").mkdir()
    (tmp_path / "two" / "pushes-0").mkdir()

    with pytest.raises(ApiError) as refusal:
        manager.open("pushes", 0, SMALL)

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_kill_at_any_operation_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended_in = set()

    for operation in count():
        path = tmp_path / f"run-{operation}"
        manager = manager_of(path)
        log = filled(manager, 60)
        log.delete_records(5)
        move, appended, killed = begin(manager), 60, False
        with monkeypatch.context() as patch:
            kill_at(operation, OPERATIONS, patch)
            try:
                for step in move.steps():
                    if callable(step):
                        step()
                    log.append(batch_of(b"%d" % appended, producer=(1, 0, appended)), NOW_MS)
                    appended += 1
            except Killed:
                killed = True
        log.release()
        log = manager_of(path).open("pushes", 0, SMALL, ID)
        assert numbers(log)[: appended - 5] == list(range(5, appended))
        assert log.producers.producers[1].last_sequence >= appended - 1
        assert len(list(path.glob("*/*"))) == 1
        ended_in.add(log.directory.parent.name)
        log.release()
        shutil.rmtree(path)
        if not killed:
            break

    assert ended_in == {"one", "two"}
    assert operation > 20


def with_two_folders(
    tmp_path: Path, marked: str, batches: dict[str, int], ids: dict[str, bytes]
) -> LogManager:
    """A restart with the partition in both directories, one of them with the mark of a move."""
    for name, count_of in batches.items():
        manager = LogManager(tmp_path / name, now_ms=NOW_MS)
        log = manager.open("pushes", 0, SMALL, ids[name])
        for number in range(count_of):
            log.append(batch_of(b"%d" % number), NOW_MS)
        manager.close()
    (tmp_path / marked / "pushes-0" / MOVED_MARK).touch()
    return manager_of(tmp_path)


def test_a_marked_copy_replaces_the_folder_that_it_was_made_of(tmp_path: Path) -> None:
    again = with_two_folders(tmp_path, "two", {"one": 5, "two": 6}, {"one": ID, "two": ID})

    assert numbers(again.open("pushes", 0, SMALL, ID)) == list(range(6))
    assert [path.name for path in tmp_path.glob("*/*")] == ["pushes-0"]


@pytest.mark.parametrize(
    ("batches", "other_id"),
    [({"one": 60, "two": 50}, ID), ({"one": 5, "two": 4}, ID), ({"one": 5, "two": 6}, bytes(16)[1:] + b"x")],
    ids=["segments are missing", "records are missing", "another topic"],
)
def test_a_mark_alone_deletes_nothing(tmp_path: Path, batches: dict[str, int], other_id: bytes) -> None:
    again = with_two_folders(tmp_path, "two", batches, {"one": other_id, "two": ID})

    kept = numbers(again.open("pushes", 0, SMALL, ID))
    [stray] = (tmp_path / "one").iterdir()
    aside = PartitionLog(stray, SMALL, NOW_MS)

    assert kept == list(range(batches["two"]))
    assert stray.name.endswith("-stray")
    assert numbers(aside) == list(range(batches["one"]))


def test_the_mark_of_an_earlier_move_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MockClock()
    manager = LogManager(tmp_path / "two", tmp_path / "one", now_ms=NOW_MS)
    log = filled(manager, 3)
    for directory, name, call in (("one", MOVED_MARK, "unlink"), ("two", "pushes-0", "rename")):
        move = manager.move("pushes", 0, tmp_path / directory, clock)
        assert move is not None
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing_for(name, getattr(os, call)))
            run_steps(move.steps())
        manager.moves.clear()
    log.append(batch_of(b"3"), NOW_MS)
    log.release()

    again = manager_of(tmp_path).open("pushes", 0, SMALL, ID)

    assert again.directory.parent.name == "two"
    assert numbers(again) == [0, 1, 2, 3]


def failing_for(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that cannot change a file or folder of this name."""

    def call(path: Any, *args: Any, **options: Any) -> Any:
        if Path(path).name == name and Path(path).exists():
            raise OSError(ENOSPC, "No space left on device")
        return real(path, *args, **options)

    return call
