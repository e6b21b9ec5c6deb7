"""Long work in short steps that run between requests.

The work is a generator. The value it yields tells the caller how to continue:

* None: a step of a few hundred microseconds at most is done. Continue now or later.
* A callable, which blocks: run it on a thread, then send its result into the generator or throw its
  exception.
* A `Pause`: continue after this many milliseconds.
* A `Deferred`, which other work completes: the same with its outcome. Only one generator can wait for it.

The generator may be closed at any point; everything stays consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from odradek.waiting.deferred import Deferred

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Pause:
    """A time without work, or without permission to work."""

    wait_ms: int


Step = Callable[[], Any] | Pause | Deferred[Any] | None
Steps = Generator[Step, Any, None]


def run_steps(steps: Generator[Step, Any, Any]) -> int:
    """Run all steps here, ignoring pauses, and return how many there were."""
    return _run(steps)[1]


def result_of(steps: Generator[Step, Any, R]) -> R:
    """Run all steps here, ignoring pauses, and return the result."""
    result: R = _run(steps)[0]
    return result


def _run(steps: Generator[Step, Any, Any]) -> tuple[Any, int]:
    pieces = 0
    try:
        step = next(steps)
        while True:
            pieces += 1
            if isinstance(step, Deferred):
                step = _continued(steps, step.result)
            else:
                step = _continued(steps, step) if callable(step) else next(steps)
    except StopIteration as stop:
        return stop.value, pieces


def _continued(steps: Generator[Step, Any, Any], work: Callable[[], Any]) -> Step:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001  the generator handles it
        return steps.throw(error)
    return steps.send(result)
