"""Run long work between requests, a little at a time; blocking steps run elsewhere.

A runner gives its tasks a limited part of the loop: a turn takes `turn_ns` and one more step at most. In a
turn the tasks take slices of equal time, so that a task with expensive steps does not slow down the others.
Every second slice frees large lists that nobody uses any more, if there are some.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from odradek.bounds.large_list import FREED_TOGETHER, LargeList
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred, Offload, offload_inline
from odradek.waiting.kept_error import KeptError
from odradek.waiting.steps import Pause, Step

log = logging.getLogger(__name__)

TURN_NS: Final = 1_000_000
BETWEEN_TURNS_MS: Final = 2
"""Limits upkeep to a third of the loop, and only while there is work."""
CHECK_MS: Final = 100
"""How long a discarded list waits at most if nothing else runs."""
SLICES: Final = 4
"""Slices of a turn of requests."""
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Task:
    """One piece of work and the result of its last step."""

    steps: Generator[Step, Any, Any]
    ended: Callable[[Any], None]
    """Called with what the generator returns or raises."""
    deferred: Deferred[Any] | None = None
    """The answer to a request."""
    result: Any = None

    def end(self) -> None:
        """Hand the outcome over, and keep nothing: the frames of an error hold the task."""
        result, self.result = self.result, None
        self.ended(result)


class StepRunner:
    """Tasks that take turns.

    Args:
        timer: Runs the turns.
        clock: The time.
        offload: Runs blocking steps.
        soon: Does a turn in a pass of the loop that does no other long work; None: turns do not wait for one.
        turn_ns: The time of one turn.
        slice_ns: How long one task runs before the next one; 0 for one step.
        pause_ms: The time between two turns. With 0 the loop only serves its sockets once.
    """

    def __init__(
        self,
        timer: Timer,
        clock: Clock,
        offload: Offload = offload_inline,
        soon: Callable[[Callable[[], None]], None] | None = None,
        *,
        turn_ns: int = TURN_NS,
        slice_ns: int = 0,
        pause_ms: int = BETWEEN_TURNS_MS,
    ) -> None:
        self.timer = timer
        self.clock = clock
        self.monotonic_ns = clock.monotonic_ns
        self.offload = offload
        self.soon = soon
        self.turn_ns = turn_ns
        self.slice_ns = slice_ns
        self.pause_ms = pause_ms
        self.ready: deque[Task] = deque()
        self.tasks: set[Task] = set()
        self.awake = False
        """A turn is scheduled or running."""
        self.spare_ns = 0
        """The time that is left for first slices of requests until the next turn."""
        self.turns = 0
        """Turns so far: work that sees another number than at its start is in a later turn."""
        self.deferred = 0
        """Requests that took more than their first slice."""
        self.discarded: deque[LargeList] = deque()
        """Lists to free. Other threads may add to it."""
        self.uses_lists = self.checks = False

    @classmethod
    def of_requests(
        cls,
        timer: Timer,
        clock: Clock,
        turn_us: int,
        offload: Offload = offload_inline,
        soon: Callable[[Callable[[], None]], None] | None = None,
    ) -> StepRunner:
        """A runner for the work of requests, which continues as soon as the loop has served its sockets."""
        turn_ns = turn_us * 1_000
        return cls(timer, clock, offload, soon, turn_ns=turn_ns, slice_ns=turn_ns // SLICES, pause_ms=0)

    def run(self, steps: Generator[Step, Any, Any], ended: Callable[[Any], None] = lambda _: None) -> None:
        """Run all steps in the background, starting soon; call ``ended`` with the result or the error."""
        task = Task(steps, partial(self.report, ended))
        self.tasks.add(task)
        self.go_on(task)

    @staticmethod
    def report(ended: Callable[[Any], None], outcome: Any) -> None:
        """Log an unexpected error of background work."""
        is_answer = isinstance(outcome, OSError) or (isinstance(outcome, KeptError) and outcome.is_answer)
        if isinstance(outcome, Exception) and not is_answer:
            log.error("upkeep failed", exc_info=outcome)
        ended(outcome)

    def answer(self, steps: Generator[Step, Any, R], *, droppable: bool = False) -> R | Deferred[R]:
        """Do the work of a request, which begins at once: a request of a single step never waits.

        Args:
            steps: The work; it returns the response.
            droppable: The work changes nothing, so it ends when the connection is lost.

        Returns:
            The response if the time of this turn is enough, else a deferred of it.

        Raises:
            Exception: The work raises it in its first slice.
        """
        started_ns = self.monotonic_ns()
        budget_ns = min(self.spare_ns, self.slice_ns) if self.awake else self.turn_ns
        end_ns = started_ns + budget_ns
        try:
            while (step := next(steps)) is None and self.monotonic_ns() < end_ns:
                pass
        except StopIteration as stop:
            response: R = stop.value
            return response
        finally:
            if self.awake:
                self.spare_ns -= self.monotonic_ns() - started_ns
            if self.discarded:
                self.wake()
        deferred: Deferred[R] = Deferred()
        task = Task(steps, deferred.complete, deferred)
        if droppable:
            deferred.abandon = partial(self.drop, task)
        self.deferred += step is None
        self.tasks.add(task)
        if not self.awake:
            self.spare_ns = end_ns - self.monotonic_ns()
        self.follow(task, step)
        return deferred

    def drop(self, task: Task) -> None:
        """Give up a request whose connection is lost."""
        self.tasks.discard(task)
        task.deferred = None
        task.steps.close()
        self.wake()

    def go_on(self, task: Task) -> None:
        """Queue a task that is ready to continue."""
        if task not in self.tasks:
            return
        self.ready.append(task)
        self.wake()

    def wake(self) -> None:
        """Have a turn soon if there is something to do."""
        if (self.ready or self.discarded) and not self.awake:
            self.awake = True
            self.schedule(0)

    def large_list(self) -> LargeList:
        """A list whose elements are freed in pieces, if they become many."""
        self.uses_lists = True
        self.check_later()
        return LargeList(self.discarded)

    def check_later(self) -> None:
        """Look for discarded lists after a while, because they may be freed anywhere."""
        if not self.checks:
            self.checks = True
            self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.check)

    def check(self) -> None:
        """Free what was discarded; check again if lists were made since the last time."""
        self.checks = False
        if self.uses_lists:
            self.uses_lists = False
            self.check_later()
        self.wake()

    def schedule(self, wait_ms: int) -> None:
        """Have the next turn after a time."""
        turn = self.turn if self.soon is None else partial(self.soon, self.turn)
        if wait_ms or self.soon is None:
            self.timer.schedule(self.clock.monotonic_ms() + wait_ms, turn)
        else:
            turn()

    def turn(self) -> None:
        """Advance the tasks in turn until the time is used up."""
        now_ns = self.monotonic_ns()
        end_ns = now_ns + self.turn_ns
        self.spare_ns = self.turn_ns
        self.turns += 1
        frees = False
        try:
            while (self.ready or self.discarded) and now_ns < end_ns:
                frees = bool(self.discarded) and not (frees and self.ready)
                if frees:
                    now_ns = self.free(min(now_ns + self.slice_ns, end_ns))
                    continue
                now_ns = self.give_slice(self.ready.popleft(), now_ns, end_ns)
        finally:
            self.awake = bool(self.ready or self.discarded)
            if self.awake:
                self.schedule(self.pause_ms)

    def free(self, end_ns: int) -> int:
        """Free elements of discarded lists until the given time. Return the time after that."""
        elements, now_ns = self.discarded.popleft(), 0
        while elements and now_ns < end_ns:
            del elements[-FREED_TOGETHER:]
            now_ns = self.monotonic_ns()
        if elements:
            self.discarded.appendleft(elements)
        return now_ns or self.monotonic_ns()

    def give_slice(self, task: Task, now_ns: int, end_ns: int) -> int:
        """Advance one task until its slice is over, it waits, or it ends. Return the time after that."""
        if task not in self.tasks:
            return now_ns
        advance = partial(self.advance, task, min(now_ns + self.slice_ns, end_ns))
        around = None if task.deferred is None else task.deferred.around
        stopped_ns = advance() if around is None else around(advance)
        if stopped_ns is not None:
            return stopped_ns
        # not within `around`: the response includes the time that was measured
        self.tasks.discard(task)
        task.end()
        return self.monotonic_ns()

    def advance(self, task: Task, end_ns: int) -> int | None:
        """Run steps of a task until the given time. Return the time after the last one; None at its end."""
        while True:
            result, task.result = task.result, None
            try:
                step = task.steps.throw(result) if isinstance(result, Exception) else task.steps.send(result)
            except StopIteration as stop:
                task.result = stop.value
                return None
            except KeptError as error:
                task.result = error.kept()
                return None
            except Exception as error:  # noqa: BLE001  the caller handles the outcome
                task.result = error
                return None
            now_ns = self.monotonic_ns()
            if step is not None or now_ns >= end_ns:
                self.follow(task, step)
                return now_ns

    def follow(self, task: Task, step: Step) -> None:
        """Decide by the yielded step when the task continues."""
        if step is None:
            self.go_on(task)
        elif isinstance(step, Pause):
            self.timer.schedule(self.clock.monotonic_ms() + step.wait_ms, lambda: self.go_on(task))
        elif isinstance(step, Deferred):
            step.when_done(partial(self.resume, task))
        else:
            self.offload(step, lambda result: self.resume(task, result))

    def resume(self, task: Task, result: Any) -> None:
        """Continue a task with what it waited for: a request at once, unless others wait for their turn."""
        task.result = result
        if self.awake or task.deferred is None:
            self.go_on(task)
        else:
            now_ns = self.monotonic_ns()
            self.give_slice(task, now_ns, now_ns + self.turn_ns)
            self.wake()

    def stop(self) -> None:
        """Abandon all unfinished tasks."""
        self.ready.clear()
        self.discarded.clear()
        tasks, self.tasks = self.tasks, set()
        for task in tasks:
            task.steps.close()
