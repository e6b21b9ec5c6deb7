"""The garbage collector of a program: it has little to do, and does it in calm moments.

Requests and connections leave no reference cycles, and a test of each of their ends finds none: reference
counts free what is gone. What is left to collect comes from libraries.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from odradek.waiting.clock import Clock, Timer
from odradek.waiting.step_runner import StepRunner

CHECK_MS: Final = 1_000
DUE: Final = 5_000
"""Collections of the younger generations after which a full one is due."""
OVERDUE: Final = 120_000
"""After these it does not wait any longer: half an hour of requests that never end."""
THRESHOLDS: Final = (700, 2, OVERDUE)


def freeze_garbage() -> None:
    """Exclude everything loaded so far from garbage collection, and make full collections rare.

    A collection stops the loop for 150 to 500 ns per object, so the first two generations must stay small: a
    large request alone makes tens of thousands of objects. Nothing is collected first: that takes a tenth of
    the CPU of a start, and finds a quarter of a megabyte.
    """
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def tend_garbage(clock: Clock, timer: Timer, requests: StepRunner | None = None) -> None:
    """Freeze what a program has loaded when it is ready, and collect the rest in calm moments.

    Args:
        clock: The time.
        timer: Looks every second.
        requests: The long requests; None for a program without any.
    """
    freeze_garbage()
    collect_when_calm(lambda: requests is None or not (requests.tasks or requests.discarded), clock, timer)


def younger_collections() -> int:
    """Collections of the younger generations since the last full one."""
    return gc.get_count()[2]


def collect_when_calm(
    is_calm: Callable[[], bool],
    clock: Clock,
    timer: Timer,
    collections: Callable[[], int] = younger_collections,
    collect: Callable[[], object] = gc.collect,
) -> None:
    """Collect all garbage if that is due, and look again every second.

    A collection visits every object, and fifty long requests have a million of them: that takes half a
    second. 5000 connections have 60 000 in a host, and 190 000 in a gateway: 6 and 75 ms.
    """
    due = collections()
    if due >= DUE and (due >= OVERDUE or is_calm()):
        collect()
    timer.schedule(
        clock.monotonic_ms() + CHECK_MS,
        lambda: collect_when_calm(is_calm, clock, timer, collections, collect),
    )
