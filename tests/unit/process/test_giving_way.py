"""A worker gives its core up early, but only if it has to share it."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field

import pytest

from odradek.process.giving_way import REMEMBERED_NS, SLEEP_S, SLICE_S, WAITED_NS, SharedCore, giving_way

SLICE_NS = 500_000


@dataclass
class Core:
    """A virtual core and the times of the process on it."""

    elapsed_ns: int = 0
    cpu_ns: int = 0
    slept_s: list[float] = field(default_factory=list)

    def compute(self) -> None:
        self.elapsed_ns += SLICE_NS
        self.cpu_ns += SLICE_NS

    def wait(self, wait_ns: int) -> None:
        """Another process runs."""
        self.elapsed_ns += wait_ns

    def sleep(self, time_s: float) -> None:
        self.slept_s.append(time_s)
        self.wait(4_000_000)

    def process(self) -> SharedCore:
        return SharedCore(lambda: self.elapsed_ns, lambda: self.cpu_ns, self.sleep)


def test_a_new_process_gives_way_until_it_knows_that_it_is_alone() -> None:
    core = Core()
    process = core.process()

    while core.elapsed_ns < REMEMBERED_NS:
        core.compute()
        process.end_slice()
    at_first = len(core.slept_s)
    core.compute()
    process.end_slice()

    assert at_first > 1
    assert len(core.slept_s) == at_first


def test_a_process_alone_on_its_core_never_sleeps() -> None:
    core = Core()
    process = core.process()
    core.wait(REMEMBERED_NS)
    process.begin()

    for _ in range(100):
        core.compute()
        core.wait(WAITED_NS // 10)
        process.end_slice()

    assert core.slept_s == []


def test_a_process_that_had_to_wait_gives_way_after_each_slice_for_a_while() -> None:
    core = Core()
    process = core.process()
    core.compute()
    core.wait(WAITED_NS + 1)

    for _ in range(3):
        process.end_slice()
        core.compute()

    assert core.slept_s == [SLEEP_S] * 3


def test_it_stops_giving_way_when_it_is_alone_again() -> None:
    core = Core()
    process = core.process()
    core.wait(WAITED_NS + 1)
    process.end_slice()
    core.slept_s.clear()
    core.wait(REMEMBERED_NS)

    process.begin()
    core.compute()
    process.end_slice()

    assert core.slept_s == []


def test_its_own_sleep_does_not_count_as_waiting() -> None:
    core = Core()
    process = core.process()
    core.wait(WAITED_NS + 1)

    while core.elapsed_ns < 2 * REMEMBERED_NS:
        process.end_slice()
        core.compute()
    slept = len(core.slept_s)
    process.end_slice()

    assert len(core.slept_s) == slept


def slices(most: int) -> tuple[int, int]:
    """Work in a process that waits for its core after each slice, for longer than a slice takes.

    Returns:
        How many slices ended, and how deep their ends were nested.
    """
    ended = within = deepest = 0

    def sleep(_time_s: float) -> None:
        nonlocal ended, within, deepest
        ended, within = ended + 1, within + 1
        deepest = max(deepest, within)
        until_s = time.perf_counter() + 4 * SLICE_S
        while time.perf_counter() < until_s:
            pass
        within -= 1

    until_s = time.perf_counter() + 10
    with giving_way(SharedCore(sleep=sleep)):
        while ended < most and time.perf_counter() < until_s:
            pass
    return ended, deepest


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
def test_a_slice_begins_when_the_process_has_its_core_again() -> None:
    ended, deepest = slices(5)

    assert ended >= 5
    assert deepest == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
def test_a_signal_that_comes_after_the_work_begins_no_slice() -> None:
    with giving_way(SharedCore()):
        pass

    signal.raise_signal(signal.SIGALRM)

    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
