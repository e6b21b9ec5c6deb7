"""Full collections of garbage while no long request is in progress."""

from __future__ import annotations

import gc
from collections.abc import Callable

from odradek.clock import Clock, Timer
from odradek.step_runner import StepRunner

CHECK_MS = 1_000
DUE = 5_000
"""Collections of the younger generations after which a full one is due."""
OVERDUE = 120_000
"""After these it does not wait any longer: half an hour of requests that never end."""


def younger_collections() -> int:
    """Collections of the younger generations since the last full one."""
    return gc.get_count()[2]


def collect_when_calm(
    requests: StepRunner,
    clock: Clock,
    timer: Timer,
    collections: Callable[[], int] = younger_collections,
    collect: Callable[[], object] = gc.collect,
) -> None:
    """Collect all garbage if that is due, and look again every second.

    A collection visits every object, and fifty long requests have a million of them: that takes half a
    second. Next to nothing is garbage, because requests leave no cycles.
    """
    due = collections()
    if due >= DUE and (due >= OVERDUE or not (requests.tasks or requests.discarded)):
        collect()
    timer.schedule(
        clock.monotonic_ms() + CHECK_MS,
        lambda: collect_when_calm(requests, clock, timer, collections, collect),
    )
