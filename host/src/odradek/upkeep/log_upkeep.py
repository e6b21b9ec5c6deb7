"""The rounds of background work on the logs: retention, compaction, idle producers.

After the threads of org.apache.kafka.storage.internals.log.{LogManager,LogCleaner}, on the host's timer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from odradek.log.cleanable import Cleanable, cleanable, filthiest
from odradek.log.cleaner import DEDUPE_BUFFER_BYTES, Cleaner
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.settings.kinds import LONG, Flag, Whole
from odradek.settings.setting import Scope, setting
from odradek.upkeep.background_work import BackgroundWork
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

GRAVES_MS = 10_000
"""Interval between checks for deleted segments whose ``file.delete.delay.ms`` has passed."""
PRODUCERS_MS = 600_000
"""``producer.id.expiration.check.interval.ms``."""
SEGMENTS_A_STEP = 10


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


class LogUpkeep:
    """Begins a round of each kind from time to time, until ``work`` is stopped."""

    def __init__(
        self, logs: LogManager, work: BackgroundWork, settings: UpkeepSettings | None = None
    ) -> None:
        self.logs = logs
        self.timer, self.clock, self.runner = work.timer, work.clock, work.runner
        self.settings = settings or UpkeepSettings()
        self.uncleanable: set[PartitionLog] = set()
        """Logs in which compaction found damage; skipped until the next start."""

    def start(self) -> None:
        """Schedule all background work; nothing runs before the loop's next turn."""
        self.logs.resume_moves(self.clock)
        self.later(self.settings.retention_check_interval_ms, self.check_retention)
        self.later(GRAVES_MS, self.check_graves)
        self.later(PRODUCERS_MS, self.check_producers)
        if self.settings.cleaner_enable:
            self.later(self.settings.cleaner_backoff_ms, self.compact)

    def use_settings(self, settings: UpkeepSettings) -> None:
        """Use other settings from the next round on."""
        self.settings = settings

    def later(self, wait_ms: int, action: Callable[[], None]) -> None:
        self.timer.schedule(self.clock.monotonic_ms() + max(wait_ms, 1), action)

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
