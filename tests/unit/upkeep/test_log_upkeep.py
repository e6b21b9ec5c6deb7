"""Retention, compaction, moves and flushes on a mock clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_ids import ProducerIdConfig
from odradek.testing.clock import MockClock
from odradek.upkeep.background_work import BackgroundWork
from odradek.upkeep.log_upkeep import GRAVES_MS, PRODUCERS_MS, LogUpkeep, UpkeepSettings
from odradek.waiting.deferred import Offload, offload_inline
from odradek.wire.api_error import ApiError
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.batches import batch_of, values_from

EXPIRATION_MS = ProducerIdConfig().expiration_ms

COMPACT = LogConfig(segment_bytes=500, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.1)
HOUR_MS = 3_600_000


class MaintainedLogs:
    """Logs in two directories and their upkeep."""

    def __init__(
        self,
        path: Path,
        offload: Offload = offload_inline,
        flush_offload: Offload = offload_inline,
        **settings: Any,
    ) -> None:
        self.clock = MockClock()
        self.work = BackgroundWork(self.clock.timer, self.clock, offload, flush_offload)
        self.logs = LogManager(path / "one", path / "two", now_ms=self.clock.now_ms(), work=self.work)
        self.upkeep = LogUpkeep(self.logs, self.work, UpkeepSettings(**settings))

    def start(self) -> None:
        self.work.start()
        self.upkeep.start()

    def log(self, config: LogConfig, index: int = 0) -> PartitionLog:
        return self.logs.open("a", index, config)

    def put(self, log: PartitionLog, *keys: str) -> None:
        for key in keys:
            record = Record(key.encode(), b"v", self.clock.now_ms())
            log.append(build_batch([record]), self.clock.now_ms())


@pytest.fixture
def maintained(tmp_path: Path) -> MaintainedLogs:
    maintained = MaintainedLogs(tmp_path)
    maintained.start()
    maintained.clock.advance(0)
    return maintained


def test_old_segments_are_removed_at_every_check(maintained: MaintainedLogs) -> None:
    log = maintained.log(LogConfig(retention_ms=400_000))
    maintained.put(log, "a")
    log.roll(maintained.clock.now_ms())
    maintained.put(log, "b")

    starts = []
    for _ in range(3):
        maintained.clock.advance(300_000)
        starts.append(log.log_start_offset)

    assert starts == [0, 2, 2]


def test_many_segments_are_removed_in_one_check(maintained: MaintainedLogs) -> None:
    log = maintained.log(LogConfig(segment_bytes=70, retention_ms=1_000))
    for _ in range(35):
        maintained.put(log, "a")

    maintained.clock.advance(300_000)

    assert (log.log_start_offset, log.size_bytes) == (35, 0)


def test_files_of_removed_segments_are_deleted_later(maintained: MaintainedLogs) -> None:
    log = maintained.log(LogConfig(retention_ms=1_000, file_delete_delay_ms=60_000))
    maintained.put(log, "a")
    maintained.clock.advance(300_000)
    buried = len(list(log.directory.glob("*.deleted")))

    maintained.clock.advance(60_000 + GRAVES_MS)

    assert buried == 1
    assert not list(log.directory.glob("*.deleted"))
    assert not log.graves


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])
def test_files_of_removed_segments_outlive_their_delay_when_the_clock_is_set(
    maintained: MaintainedLogs, jump_ms: int
) -> None:
    log = maintained.log(LogConfig(retention_ms=1_000, file_delete_delay_ms=60_000))
    maintained.put(log, "a")
    maintained.clock.advance(300_000)
    left = []

    for wait_ms in (59_999, 1 + GRAVES_MS):
        maintained.clock.jump(jump_ms)
        maintained.clock.advance(wait_ms)
        left.append(len(list(log.directory.glob("*.deleted"))))

    assert left == [1, 0]


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])
def test_a_flush_by_time_comes_in_time_when_the_clock_is_set(
    maintained: MaintainedLogs, jump_ms: int
) -> None:
    log = maintained.log(LogConfig(flush_ms=1_000))
    maintained.clock.jump(jump_ms)
    maintained.put(log, "a")

    maintained.clock.advance(999)
    before = log.recovery_point
    maintained.clock.advance(1)

    assert (before, log.recovery_point) == (0, 1)


def test_a_log_whose_retention_fails_does_not_affect_the_others(
    maintained: MaintainedLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [maintained.log(LogConfig(retention_ms=1_000), index) for index in range(2)]
    for log in logs:
        maintained.put(log, "a")
    failing = logs[0].segments[0].path

    real = __import__("os").rename

    def rename(source: Any, target: Any) -> None:
        if source == failing:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr("os.rename", rename)

    maintained.clock.advance(300_000)

    assert [log.log_start_offset for log in logs] == [0, 1]


def test_the_dirtiest_logs_are_compacted_first(maintained: MaintainedLogs) -> None:
    logs = [maintained.log(COMPACT, index) for index in range(3)]
    for log in logs:
        maintained.put(log, *"aaaaaaaaab")
        log.roll(maintained.clock.now_ms())

    maintained.clock.advance(16_000)

    assert [len(values_from(log)) for log in logs] == [2, 2, 2]


def test_a_damaged_log_is_not_compacted_again(maintained: MaintainedLogs) -> None:
    damaged, sound = (maintained.log(COMPACT, index) for index in range(2))
    for log in (damaged, sound):
        maintained.put(log, *"aaaaaaaaab")
        log.roll(maintained.clock.now_ms())
    with damaged.segments[0].path.open("r+b") as file:
        file.seek(61)
        file.write(b"\xff" * 7)

    maintained.clock.advance(60_000)

    assert maintained.upkeep.uncleanable == {damaged}
    assert len(values_from(sound)) == 2


def test_compaction_can_be_switched_off(tmp_path: Path) -> None:
    maintained = MaintainedLogs(tmp_path, cleaner_enable=False)
    maintained.start()
    log = maintained.log(COMPACT)
    maintained.put(log, *"aaaaaaaaab")
    log.roll(maintained.clock.now_ms())

    maintained.clock.advance(100_000)

    assert len(values_from(log)) == 10


def test_a_move_is_run_and_forgotten(maintained: MaintainedLogs, tmp_path: Path) -> None:
    log = maintained.log(LogConfig())
    maintained.put(log, "a")

    maintained.logs.move("a", 0, tmp_path / "two", maintained.clock)
    maintained.clock.advance(1_000)

    assert log.directory.parent == tmp_path / "two"
    assert not maintained.logs.moves


def test_a_move_continues_after_a_restart(tmp_path: Path) -> None:
    maintained = MaintainedLogs(tmp_path)
    log = maintained.log(LogConfig())
    maintained.put(log, "a")
    next(iter_steps(maintained, tmp_path))
    log.release()
    again = MaintainedLogs(tmp_path)
    log = again.log(LogConfig())

    again.upkeep.start()
    again.clock.advance(1_000)

    assert log.directory.parent == tmp_path / "two"


def iter_steps(maintained: MaintainedLogs, path: Path) -> Any:
    move = maintained.logs.move("a", 0, path / "two", maintained.clock)
    assert move is not None
    return move.steps()


# Flushes


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """File descriptors that were synced."""
    seen: list[int] = []
    monkeypatch.setattr("os.fsync", seen.append)
    return seen


def test_a_log_is_flushed_after_a_number_of_records(maintained: MaintainedLogs, flushed: list[int]) -> None:
    log = maintained.log(LogConfig(flush_messages=3))

    counts = []
    for _ in range(7):
        maintained.put(log, "a")
        maintained.clock.advance(0)
        counts.append(log.recovery_point)

    assert counts == [0, 0, 3, 3, 3, 6, 6]
    assert flushed


def test_a_log_is_flushed_after_a_time(maintained: MaintainedLogs, flushed: list[int]) -> None:
    log = maintained.log(LogConfig(flush_ms=1_000))
    maintained.put(log, "a")
    maintained.clock.advance(500)
    maintained.put(log, "b")

    maintained.clock.advance(499)
    before = log.recovery_point
    maintained.clock.advance(1)

    assert (before, log.recovery_point) == (0, 2)
    assert flushed


def test_appends_before_the_upkeep_starts_are_flushed_in_time(tmp_path: Path, flushed: list[int]) -> None:
    maintained = MaintainedLogs(tmp_path)
    log = maintained.log(LogConfig(flush_ms=1_000))
    log.append(batch_of(b"x"), maintained.clock.now_ms())

    maintained.start()
    maintained.clock.advance(999)
    before = list(flushed)
    maintained.clock.advance(1)

    assert not before
    assert flushed
    assert log.recovery_point == log.log_end_offset


def test_without_a_limit_nothing_is_flushed(maintained: MaintainedLogs, flushed: list[int]) -> None:
    log = maintained.log(LogConfig())
    maintained.put(log, *"abcdefg")

    maintained.clock.advance(10_000)

    assert not flushed


def test_a_changed_topic_config_applies_from_the_next_append_on(
    maintained: MaintainedLogs, flushed: list[int]
) -> None:
    log = maintained.log(LogConfig())
    maintained.put(log, "a")
    log.config = replace(log.config, flush_messages=1)

    maintained.put(log, "b")
    maintained.clock.advance(0)

    assert log.recovery_point == 2


def test_waiters_for_a_flush_are_told(maintained: MaintainedLogs) -> None:
    log = maintained.log(LogConfig(flush_messages=1))
    told: list[ApiError | None] = []
    maintained.put(log, "a")
    log.when_flushed(told.append)
    before = list(told)

    maintained.clock.advance(0)

    assert (before, told) == ([], [None])


def test_waiters_for_a_failed_flush_get_the_reason(
    maintained: MaintainedLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = maintained.log(LogConfig(flush_messages=1))
    told: list[ApiError | None] = []

    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", failing)
    maintained.put(log, "a")
    log.when_flushed(told.append)

    maintained.clock.advance(0)

    assert [type(error) for error in told] == [ApiError]
    assert (log.log_end_offset, log.recovery_point) == (1, 0)


def test_a_log_has_one_flush_at_a_time(tmp_path: Path) -> None:
    maintained = MaintainedLogs(tmp_path)
    waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    maintained.work.flusher.offload = lambda work, done: waiting.append((work, done))
    maintained.start()
    log = maintained.log(LogConfig(flush_messages=1))
    for _ in range(5):
        maintained.put(log, "a")
        maintained.clock.advance(0)
    begun = len(waiting)
    work, done = waiting.pop()

    done(work())
    maintained.clock.advance(0)

    assert (begun, len(waiting), log.recovery_point) == (1, 1, 1)
    work, done = waiting.pop()
    done(work())
    maintained.clock.advance(0)
    assert log.recovery_point == 5


def test_a_waiter_just_before_a_flush_starts_is_included(maintained: MaintainedLogs) -> None:
    log = maintained.log(LogConfig(flush_messages=1))
    told: list[ApiError | None] = []
    later = MockClock()
    later.advance(1)
    maintained.work.flusher.clock = later  # the loop is slow: the flush is due, and starts in its next turn
    maintained.put(log, "a")
    maintained.clock.timer.run_due(maintained.clock.monotonic_ms())
    maintained.put(log, "b")
    log.when_flushed(told.append)

    maintained.clock.advance(1)

    assert (told, log.recovery_point) == ([None], 2)


def test_a_flush_by_count_cancels_the_one_by_time(maintained: MaintainedLogs, flushed: list[int]) -> None:
    log = maintained.log(LogConfig(flush_messages=2, flush_ms=100_000))
    before = len(maintained.clock.timer)

    for _ in range(20):
        maintained.put(log, "a", "b")
        maintained.clock.advance(0)

    assert len(maintained.clock.timer) == before
    assert len(flushed) < 30


@pytest.mark.parametrize("position", [0, 16])
def test_a_log_whose_dirtiness_is_unknown_does_not_affect_the_others(
    maintained: MaintainedLogs, position: int
) -> None:
    lagging = replace(COMPACT, max_compaction_lag_ms=10)
    damaged, sound = (maintained.log(lagging, index) for index in range(2))
    for log in (damaged, sound):
        maintained.put(log, *"aaaaaaaaab")
        log.roll(maintained.clock.now_ms())
    with damaged.segments[0].path.open("r+b") as file:
        file.seek(position)
        file.write(b"\xff" * 61)
    for segment in damaged.segments:
        segment.truncate(segment.size_bytes)  # drop the cached state of its first batch

    maintained.clock.advance(60_000)

    assert maintained.upkeep.uncleanable == {damaged}
    assert len(values_from(sound)) == 2


def test_idle_producers_are_forgotten_in_every_log(maintained: MaintainedLogs) -> None:
    logs = [maintained.log(LogConfig(), index) for index in range(2)]
    for log in logs:
        log.append(
            batch_of(b"x", timestamp_ms=maintained.clock.now_ms(), producer=(7, 0, 0)),
            maintained.clock.now_ms(),
        )
    maintained.clock.advance(EXPIRATION_MS - 1)
    before = [len(log.producers.producers) for log in logs]

    maintained.clock.advance(PRODUCERS_MS)

    assert (before, [len(log.producers.producers) for log in logs]) == ([1, 1], [0, 0])


def test_flushes_do_not_wait_for_a_deleted_log(tmp_path: Path) -> None:
    busy: list[Callable[[], Any]] = []
    maintained = MaintainedLogs(tmp_path, offload=lambda work, _done: busy.append(work))
    maintained.start()
    maintained.log(LogConfig(), 1)
    maintained.logs.delete("a", 1)
    log = maintained.log(LogConfig(flush_messages=1))

    maintained.put(log, "a")
    maintained.clock.advance(0)

    assert (len(busy), log.recovery_point) == (1, 1)


def test_folders_of_deleted_topics_are_removed_a_few_at_a_time(tmp_path: Path) -> None:
    out: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    maintained = MaintainedLogs(tmp_path, offload=lambda work, done: out.append((work, done)))
    maintained.start()
    for index in range(30):
        maintained.log(LogConfig(), index)
    for index in range(30):
        maintained.logs.delete("a", index)

    left = []
    while True:
        maintained.clock.advance(0)
        left.append(len(list(tmp_path.glob("*/*"))))
        if not out:
            break
        [(work, done)] = out
        out.clear()
        done(work())

    assert left == [30, 20, 10, 0]


def test_a_stop_does_not_wait_for_the_folders_of_deleted_topics(tmp_path: Path) -> None:
    out: list[Callable[[], Any]] = []
    maintained = MaintainedLogs(tmp_path, offload=lambda work, _: out.append(work))
    maintained.start()
    for index in range(30):
        maintained.log(LogConfig(), index)
        maintained.logs.delete("a", index)
    maintained.clock.advance(0)

    maintained.work.stop()
    maintained.clock.advance(0)
    for work in out:
        work()

    assert len(list(tmp_path.glob("*/*"))) == 20


def test_a_start_does_not_wait_for_the_folders_of_deleted_topics(tmp_path: Path) -> None:
    for index in range(30):
        (tmp_path / "one" / f"t-{index}.AAAA.0-delete").mkdir(parents=True)
    maintained = MaintainedLogs(tmp_path)
    assert len(list(tmp_path.glob("*/*"))) == 30

    maintained.start()
    maintained.clock.advance(0)

    assert list(tmp_path.glob("*/*")) == []
