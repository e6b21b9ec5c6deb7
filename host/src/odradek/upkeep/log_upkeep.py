"""Background work on the logs: retention, compaction, moves between directories, flushes.

After the threads of org.apache.kafka.storage.internals.log.{LogManager,LogCleaner}, on the host's timer.
"""

from __future__ import annotations

import logging
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from odradek.log.cleanable import Cleanable, cleanable, filthiest
from odradek.log.cleaner import DEDUPE_BUFFER_BYTES, Cleaner
from odradek.log.flush_state import NEVER_MS
from odradek.log.log_manager import LogManager
from odradek.log.partition_folder import Partition
from odradek.log.partition_log import PartitionLog
from odradek.log.replica_move import ReplicaMove
from odradek.settings.kinds import LONG, Flag, Whole
from odradek.settings.setting import Scope, setting
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Offload, offload_inline
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

GRAVES_MS = 10_000
"""Interval between checks for deleted segments whose ``file.delete.delay.ms`` has passed."""
PRODUCERS_MS = 600_000
"""``producer.id.expiration.check.interval.ms``."""
SEGMENTS_A_STEP = 10
FOLDERS_A_STEP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepSettings:
    """Settings of retention and compaction, after ServerLogConfigs and CleanerConfig."""

    # fmt: off
    retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms", Whole(LONG, 1), 300_000,
        "How often the host looks for segments to delete.", unit="ms",
    )
    cleaner_enable: bool = setting(
        "log.cleaner.enable", Flag(), True, "Whether topics with the cleanup policy `compact` are compacted.",
    )
    cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms", Whole(LONG), 15_000,
        "How long compaction pauses when there is nothing to compact.", unit="ms", scope=Scope.BROKER,
    )
    cleaner_dedupe_buffer_bytes: int = setting(
        "log.cleaner.dedupe.buffer.size", Whole(LONG, 1 << 20), DEDUPE_BUFFER_BYTES,
        "Memory for the keys of one round of compaction; each key takes 200 bytes.", unit="bytes",
        scope=Scope.BROKER,
    )
    # fmt: on


def remove_trees(folders: Iterable[Path]) -> None:
    """Delete folders as far as possible."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class LogUpkeep:
    """Runs background work on the logs from ``start`` to ``stop``."""

    def __init__(
        self,
        logs: LogManager,
        timer: Timer,
        clock: Clock,
        settings: UpkeepSettings | None = None,
        offload: Offload = offload_inline,
        flush_offload: Offload | None = None,
        soon: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self.logs = logs
        self.timer = timer
        self.clock = clock
        self.settings = settings or UpkeepSettings()
        self.runner = StepRunner(timer, clock, offload, soon)
        self.flusher = StepRunner(timer, clock, flush_offload or offload, soon)
        """Separate from `runner`, on its own thread: producers wait for flushes, and deleting a topic
        may take seconds."""
        self.due_flushes: dict[PartitionLog, TimerTask] = {}
        self.flushing: set[PartitionLog] = set()
        self.asked_again: set[PartitionLog] = set()
        self.uncleanable: set[PartitionLog] = set()
        """Logs in which compaction found damage; skipped until the next start."""
        self.abandoned: deque[Path] = deque()
        """Folders of deleted or moved logs that remain to be deleted."""
        self.removing = False
        self.stopped = False

    def start(self) -> None:
        """Schedule all background work; nothing runs before the loop's next turn."""
        self.logs.flush_wanted = self.flush_wanted
        self.logs.folders.remove_tree = self.remove_tree
        for folder in self.logs.folders.leftovers:
            self.remove_tree(folder)
        self.logs.folders.leftovers.clear()
        self.logs.move_begun = self.run_move
        self.logs.resume_moves(self.clock)
        for each in self.logs:
            if each.recovery_point < each.log_end_offset and each.config.flush_ms < NEVER_MS:
                self.flush_wanted(each, each.config.flush_ms)  # it has asked already, and does so only once
        self.later(self.settings.retention_check_interval_ms, self.check_retention)
        self.later(GRAVES_MS, self.check_graves)
        self.later(PRODUCERS_MS, self.check_producers)
        if self.settings.cleaner_enable:
            self.later(self.settings.cleaner_backoff_ms, self.compact)

    def stop(self) -> None:
        """Abandon all background work."""
        self.stopped = True
        self.runner.stop()
        self.flusher.stop()

    def use_settings(self, settings: UpkeepSettings) -> None:
        """Use other settings from the next round on."""
        self.settings = settings

    def later(self, wait_ms: int, action: Callable[[], None]) -> None:
        if not self.stopped:
            self.timer.schedule(self.clock.monotonic_ms() + max(wait_ms, 1), action)

    def remove_tree(self, folder: Path) -> None:
        """Delete a folder that is no longer used, off the loop and after those before it."""
        self.abandoned.append(folder)
        if not self.removing:
            self.removing = True
            self.runner.run(self.removals())

    def removals(self) -> Steps:
        """Delete abandoned folders, a few in each step: a stop does not wait for the others, which the next
        start deletes.
        """
        while self.abandoned:
            some = [self.abandoned.popleft() for _ in range(min(len(self.abandoned), FOLDERS_A_STEP))]
            yield partial(remove_trees, some)
        self.removing = False

    # Retention

    def check_retention(self) -> None:
        """Delete segments beyond the retention limits, then schedule the next check."""
        wait_ms = self.settings.retention_check_interval_ms
        self.runner.run(self.retention(), lambda _: self.later(wait_ms, self.check_retention))

    def retention(self) -> Steps:
        """Apply the retention limits, log by log."""
        for each in self.logs:
            try:
                while not each.closed and each.delete_expired(self.clock.now_ms(), SEGMENTS_A_STEP):
                    yield None
            except (ApiError, OSError) as error:
                log.warning(
                    "retention failed, trying again later", extra={"log": each.name, "problem": str(error)}
                )
            yield None

    def check_graves(self) -> None:
        """Unlink segments deleted long enough ago, then schedule the next check."""
        self.runner.run(self.graves(), lambda _: self.later(GRAVES_MS, self.check_graves))

    def graves(self) -> Steps:
        """Unlink due segments, log by log."""
        for each in self.logs:
            now_ms = self.clock.monotonic_ms()
            for grave in each.graves:
                grave.due_ms = min(grave.due_ms, now_ms + grave.delay_ms)
            while each.graves and each.graves[0].due_ms <= now_ms:
                try:
                    yield partial(each.graves.popleft().path.unlink, missing_ok=True)
                except OSError as error:
                    self.logs.files.failures.answer("unlink a segment of", each.directory, error)
                    log.warning(
                        "deleted segment cannot be unlinked", extra={"log": each.name, "problem": str(error)}
                    )
            yield None

    def check_producers(self) -> None:
        """Expire idle producers, then schedule the next check."""
        self.runner.run(self.silent_producers(), lambda _: self.later(PRODUCERS_MS, self.check_producers))

    def silent_producers(self) -> Steps:
        """Expire idle producers, log by log."""
        for each in self.logs:
            each.producers.expire(self.clock.now_ms())
            yield None

    # Compaction

    def compact(self) -> None:
        """Compact the dirtiest log, then the next one; pause when none is left."""
        found: list[Cleanable] = []
        self.runner.run(self.judge(found), lambda _: self.compact_one(found))

    def judge(self, found: list[Cleanable]) -> Steps:
        """Collect what compaction could clean, log by log."""
        for each in self.logs:
            if each.config.is_compacted and not each.closed and each not in self.uncleanable:
                try:
                    found.append(cleanable(each, self.clock.now_ms()))
                except (ApiError, OSError) as error:
                    self.give_up(each, error)
            yield None

    def compact_one(self, found: Iterable[Cleanable]) -> None:
        """Compact the dirtiest of the logs found."""
        todo = filthiest(each for each in found if not (each.log.closed or each.log.moving))
        if todo is None:
            self.later(self.settings.cleaner_backoff_ms, self.compact)
            return
        cleaner = Cleaner(todo, self.clock.now_ms(), self.settings.cleaner_dedupe_buffer_bytes)
        self.runner.run(cleaner.steps(), partial(self.compacted, todo))

    def compacted(self, todo: Cleanable, error: Exception | None) -> None:
        """Schedule the next round."""
        # a log that moved on may have more to clean: look again at once, not after the backoff
        moved_on = todo.log.first_dirty_offset != todo.first_dirty_offset
        if error is not None:
            self.give_up(todo.log, error)
        self.later(1 if moved_on else self.settings.cleaner_backoff_ms, self.compact)

    def give_up(self, failed: PartitionLog, error: Exception) -> None:
        """Skip a log this time, or until the next start if it is damaged."""
        log.warning("compaction failed", extra={"log": failed.name, "problem": str(error)})
        if isinstance(error, ApiError) and error.code == ErrorCode.CORRUPT_MESSAGE:
            self.uncleanable.add(failed)

    # Moves

    def run_move(self, partition: Partition, move: ReplicaMove) -> None:
        """Move a partition into another directory."""
        self.runner.run(move.steps(), lambda _: self.moved(partition, move))

    def moved(self, partition: Partition, move: ReplicaMove) -> None:
        if self.logs.moves.get(partition) is move:
            del self.logs.moves[partition]

    # Flushes

    def flush_wanted(self, asking: PartitionLog, wait_ms: int) -> None:
        """Schedule the flush that ``flush.messages`` or ``flush.ms`` requires."""
        self.forget_due_flush(asking)
        due_ms = self.clock.monotonic_ms() + wait_ms
        self.due_flushes[asking] = self.timer.schedule(due_ms, partial(self.flush, asking))

    def forget_due_flush(self, log: PartitionLog) -> None:
        """Cancel the scheduled flush: an earlier one replaces it."""
        task = self.due_flushes.pop(log, None)
        if task is not None:
            task.cancel()

    def flush(self, asking: PartitionLog) -> None:
        """Flush a log, one flush at a time: records appended meanwhile wait for the next one."""
        self.forget_due_flush(asking)
        if asking.closed or self.stopped:
            return
        if asking in self.flushing:
            self.asked_again.add(asking)
            return
        self.flushing.add(asking)
        self.flusher.run(asking.flushing(), partial(self.flushed, asking))

    def flushed(self, asking: PartitionLog, error: Exception | None) -> None:
        self.flushing.discard(asking)
        if error is not None:
            log.error("log cannot be flushed", extra={"log": asking.name, "problem": str(error)})
        if asking in self.asked_again:
            self.asked_again.discard(asking)
            self.flush(asking)
