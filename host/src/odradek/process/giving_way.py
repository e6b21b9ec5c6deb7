"""A process that gives its core up early while another one waits for it.

A kernel takes a core away at its tick, which is up to 4 ms later on usual systems, whatever the priorities
are: a worker that gets three percent of the core of the event loop stops it for 4 ms eight times a second. A
process that sleeps hands the core over at once. So a worker sleeps for a moment every half millisecond while
it has to share its core. It gets as much of it as before, in smaller slices.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SLICE_S = 0.000_5
SLEEP_S = 0.000_05
WAITED_NS = 1_000_000
"""A process that has not run for this time between two slices shares its core."""
REMEMBERED_NS = 200_000_000
"""How long it then takes the core for shared, as every process does at its start."""


class SharedCore:
    """Whether a process shares its core, from the difference between elapsed time and CPU time.

    Args:
        elapsed_ns: The time.
        cpu_ns: The CPU time of the process.
        sleep: Sleeps for some seconds.
    """

    def __init__(
        self,
        elapsed_ns: Callable[[], int] = time.perf_counter_ns,
        cpu_ns: Callable[[], int] = time.process_time_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.elapsed_ns = elapsed_ns
        self.cpu_ns = cpu_ns
        self.sleep = sleep
        self.shared_until_ns = elapsed_ns() + REMEMBERED_NS
        self.begin()

    def begin(self) -> None:
        """Measure from now on."""
        self.idle_ns = self.elapsed_ns() - self.cpu_ns()

    def end_slice(self) -> None:
        """Sleep if the core is shared."""
        now_ns = self.elapsed_ns()
        if now_ns - self.cpu_ns() - self.idle_ns > WAITED_NS:
            self.shared_until_ns = now_ns + REMEMBERED_NS
        if now_ns < self.shared_until_ns:
            self.sleep(SLEEP_S)
        self.begin()


@contextmanager
def giving_way(core: SharedCore) -> Iterator[None]:
    """Give way to other processes while work runs in the main thread. Does nothing on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    working = True

    def time_slice() -> None:
        # Not an interval: it would go on while the process sleeps or waits for its core, and the next slice
        # would be over before it begins.
        signal.setitimer(signal.ITIMER_REAL, SLICE_S)

    def end_slice(_number: int, _frame: FrameType | None) -> None:
        if working:  # the signal may come just after the work
            core.end_slice()
            time_slice()

    signal.signal(signal.SIGALRM, end_slice)
    core.begin()
    time_slice()
    try:
        yield
    finally:
        working = False
        signal.setitimer(signal.ITIMER_REAL, 0)
