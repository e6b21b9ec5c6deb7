"""Long work in short steps that run between requests.

The work is a generator. The value it yields tells the caller how to continue:

* None: a step of a few hundred microseconds at most is done. Continue now or later.
* A callable, which blocks: run it on a thread, then send its result into the generator or throw its
  exception.
* A `Pause`: continue after this many milliseconds.

The generator may be closed at any point; everything stays consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """A time without work, or without permission to work."""

    wait_ms: int


Step = Callable[[], Any] | Pause | None
Steps = Generator[Step, Any, None]


def run_steps(steps: Generator[Step, Any, Any]) -> int:
    """Run all steps here, ignoring pauses, and return how many there were."""
    pieces = 0
    step = next(steps, _END)
    while step is not _END:
        pieces += 1
        try:
            step = _continued(steps, step) if callable(step) else next(steps)
        except StopIteration:
            break
    return pieces


_END: Any = object()


def _continued(steps: Generator[Step, Any, Any], work: Callable[[], Any]) -> Step:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001  the generator handles it
        return steps.throw(error)
    return steps.send(result)
