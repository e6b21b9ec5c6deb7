"""The memory of one of many equal things: the growth of a process while they are added in steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.harness import Server, rss_bytes

STEPS = 8
LARGEST_RATIO = 3
"""Of the largest step to the smallest: memory grows in chunks, and tables by doubling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The private bytes of a server while something was added in steps of the same size."""

    count: int
    """Of all steps together."""
    sizes: Sequence[int]
    """Before the first step and after each."""

    @property
    def added(self) -> int:
        return self.sizes[-1] - self.sizes[0]

    @property
    def each(self) -> float:
        """Bytes of one thing; NaN if the steps contradict each other, because something else was freed."""
        steps = [after - before for before, after in pairwise(self.sizes)]
        agree = min(steps) > 0 and max(steps) <= LARGEST_RATIO * min(steps)
        return self.added / self.count if agree else math.nan


def grown(server: Server, count: int, add: Callable[[], object], *, settled_s: float = 0.0) -> Growth:
    """Add things, and look at the memory after each step.

    Args:
        server: It gets the things.
        count: The number of things.
        add: Adds one.
        settled_s: The time that a server needs after a step.
    """
    sizes = [rss_bytes(server.pid)]
    for _ in range(STEPS):
        for _ in range(count // STEPS):
            add()
        time.sleep(settled_s)
        sizes.append(rss_bytes(server.pid))
    return Growth(count=count // STEPS * STEPS, sizes=sizes)
