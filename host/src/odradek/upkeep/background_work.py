"""What logs ask for, done in the background: flushes, moves between directories, folders that go."""

from __future__ import annotations

import logging
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from odradek.log.log_work import LogWork
from odradek.log.partition_log import PartitionLog
from odradek.log.replica_move import ReplicaMove
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import Offload, offload_inline
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps

log = logging.getLogger(__name__)

FOLDERS_A_STEP = 10


def remove_trees(folders: Iterable[Path]) -> None:
    """Delete folders as far as possible."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class BackgroundWork(LogWork):
    """Works on the host's timer and threads until ``stop``; folders are deleted after ``start``."""

    def __init__(
        self,
        timer: Timer,
        clock: Clock,
        offload: Offload = offload_inline,
        flush_offload: Offload | None = None,
        soon: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self.timer = timer
        self.clock = clock
        self.runner = StepRunner(timer, clock, offload, soon)
        self.flusher = StepRunner(timer, clock, flush_offload or offload, soon)
        """Separate from `runner`, on its own thread: producers wait for flushes, and deleting a topic
        may take seconds."""
        self.due_flushes: dict[PartitionLog, TimerTask] = {}
        self.flushing: set[PartitionLog] = set()
        self.asked_again: set[PartitionLog] = set()
        self.abandoned: deque[Path] = deque()
        """Folders of deleted or moved logs that remain to be deleted."""
        self.removing = True
        """Folders are being deleted; or this has not started, and will begin with them."""
        self.stopped = False

    def start(self) -> None:
        """Delete the folders that the last run has left; nothing runs before the loop's next turn."""
        self.runner.run(self.removals())

    def stop(self) -> None:
        """Abandon all work."""
        self.stopped = True
        self.runner.stop()
        self.flusher.stop()

    def remove(self, folder: Path) -> None:
        """Delete a folder off the loop and after those before it."""
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

    def move(self, move: ReplicaMove, ended: Callable[[object], None]) -> None:
        self.runner.run(move.steps(), ended)

    def flush(self, asking: PartitionLog, wait_ms: int) -> None:
        self.forget_due_flush(asking)
        due_ms = self.clock.monotonic_ms() + wait_ms
        self.due_flushes[asking] = self.timer.schedule(due_ms, partial(self.flush_now, asking))

    def forget_due_flush(self, log: PartitionLog) -> None:
        """Cancel the scheduled flush: an earlier one replaces it."""
        task = self.due_flushes.pop(log, None)
        if task is not None:
            task.cancel()

    def flush_now(self, asking: PartitionLog) -> None:
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
            self.flush_now(asking)
