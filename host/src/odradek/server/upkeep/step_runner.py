"""Run `Steps` between requests, a little at a time; blocking steps run on threads.

All tasks of one runner together take at most two milliseconds of the loop per turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from odradek.clock import Clock, Timer
from odradek.deferred import Offload, offload_inline
from odradek.log.steps import Pause, Steps
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

TURN_NS: Final = 2_000_000
BETWEEN_TURNS_MS: Final = 3
"""Limits upkeep to 40 % of the loop, and only while there is work."""


class FileThreads:
    """Threads for work that blocks on a disk."""

    def __init__(self, threads: int = 2) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="log-files")

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run work on a thread; see `Offload`."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self.executor, offload_result, work)
        future.add_done_callback(lambda finished: done(finished.result()))

    async def close(self) -> None:
        """Wait for the work that was begun."""
        await asyncio.to_thread(self.executor.shutdown)


def offload_result(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    offload_inline(work, results.append)
    return results[0]


@dataclass(slots=True, eq=False)
class Task:
    """One piece of work and the result of its last step."""

    steps: Steps
    ended: Callable[[Exception | None], None]
    result: Any = None


class StepRunner:
    """Tasks that take turns."""

    def __init__(self, timer: Timer, clock: Clock, offload: Offload = offload_inline) -> None:
        self.timer = timer
        self.clock = clock
        self.offload = offload
        self.ready: deque[Task] = deque()
        self.tasks: set[Task] = set()
        self.awake = False

    def run(self, steps: Steps, ended: Callable[[Exception | None], None] = lambda _: None) -> None:
        """Run all steps, starting soon; call ``ended`` with the error, or None on success."""
        task = Task(steps, ended)
        self.tasks.add(task)
        self.go_on(task)

    def go_on(self, task: Task) -> None:
        """Queue a task that is ready to continue."""
        if task not in self.tasks:
            return
        self.ready.append(task)
        if not self.awake:
            self.awake = True
            self.timer.schedule(self.clock.monotonic_ms(), self.turn)

    def turn(self) -> None:
        """Advance the tasks in turn until the time is used up."""
        end_ns = self.clock.monotonic_ns() + TURN_NS
        try:
            while self.ready:
                self.advance(self.ready.popleft())
                if self.clock.monotonic_ns() >= end_ns:
                    break
        finally:
            self.awake = bool(self.ready)
            if self.awake:
                self.timer.schedule(self.clock.monotonic_ms() + BETWEEN_TURNS_MS, self.turn)

    def advance(self, task: Task) -> None:
        """Run one step of a task."""
        result, task.result = task.result, None
        try:
            step = task.steps.throw(result) if isinstance(result, Exception) else task.steps.send(result)
        except StopIteration:
            self.end(task, None)
        except Exception as error:
            if not isinstance(error, ApiError | OSError):
                log.exception("upkeep failed")
            self.end(task, error)
        else:
            self.follow(task, step)

    def follow(self, task: Task, step: Any) -> None:
        """Decide by the yielded step when the task continues."""
        if step is None:
            self.ready.append(task)
        elif isinstance(step, Pause):
            self.timer.schedule(self.clock.monotonic_ms() + step.wait_ms, lambda: self.go_on(task))
        else:
            self.offload(step, lambda result: self.resume(task, result))

    def resume(self, task: Task, result: Any) -> None:
        """Continue a task whose offloaded step is done."""
        task.result = result
        self.go_on(task)

    def end(self, task: Task, error: Exception | None) -> None:
        self.tasks.discard(task)
        task.ended(error)

    def stop(self) -> None:
        """Abandon all unfinished tasks."""
        self.ready.clear()
        tasks, self.tasks = self.tasks, set()
        for task in tasks:
            task.steps.close()
