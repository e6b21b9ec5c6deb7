"""Long work in short pieces, so that it can run between requests.

A piece of work is a generator. What it yields says how to go on:

* None: a piece is done, of a few hundred microseconds at most. Go on at once, or later.
* A callable: it blocks. Run it elsewhere and send its result into the generator, or throw what it raised.
* A `Pause`: go on when so many milliseconds have passed.

Closing the generator at any point leaves everything consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """There is nothing to do, or nothing is allowed, for a while."""

    wait_ms: int


Step = Callable[[], Any] | Pause | None
Steps = Generator[Step, Any, None]


def run_steps(steps: Generator[Step, Any, Any]) -> int:
    """Do all of it here and now, without pausing; how many pieces there were."""
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
    except Exception as error:  # noqa: BLE001  it belongs to the generator
        return steps.throw(error)
    return steps.send(result)
