from __future__ import annotations

from functools import partial

from odradek.testing.clock import MockClock
from odradek.waiting.clock import COMPACT_FROM, Timer


def test_tasks_run_at_their_deadlines_in_order() -> None:
    clock = MockClock()
    start_ms = clock.monotonic_ms()
    ran: list[tuple[str, int]] = []

    def record(name: str) -> None:
        ran.append((name, clock.monotonic_ms() - start_ms))

    for name, delay_ms in [("second", 20), ("first", 10), ("third", 30)]:
        clock.timer.schedule(start_ms + delay_ms, partial(record, name))

    clock.advance(25)

    assert ran == [("first", 10), ("second", 20)]
    assert len(clock.timer) == 1


def test_a_cancelled_task_never_runs() -> None:
    clock = MockClock()
    ran: list[str] = []
    task = clock.timer.schedule(clock.monotonic_ms() + 10, lambda: ran.append("never"))

    task.cancel()
    task.cancel()
    clock.advance(20)

    assert ran == []
    assert len(clock.timer) == 0
    assert clock.timer.next_deadline_ms() is None


def test_the_slots_of_cancelled_tasks_are_reused() -> None:
    clock = MockClock()
    ran: list[str] = []
    clock.timer.schedule(clock.monotonic_ms() + 900_000, lambda: ran.append("kept"))

    for _ in range(10_000):
        clock.timer.schedule(clock.monotonic_ms() + 900_000, lambda: ran.append("never")).cancel()
    places = len(clock.timer.heap)
    clock.advance(900_000)

    assert places <= COMPACT_FROM + 1
    assert ran == ["kept"]


def test_a_postponed_task_runs_once_at_its_last_deadline() -> None:
    clock = MockClock()
    start_ms = clock.monotonic_ms()
    ran: list[int] = []
    task = clock.timer.schedule(start_ms + 10, lambda: ran.append(clock.monotonic_ms() - start_ms))

    task.postpone(start_ms + 30)
    task.postpone(start_ms + 50)
    clock.advance(100)

    assert ran == [50]


def test_a_task_may_schedule_the_next_one() -> None:
    clock = MockClock()
    ran: list[int] = []

    def again() -> None:
        ran.append(clock.monotonic_ms())
        if len(ran) < 3:
            clock.timer.schedule(clock.monotonic_ms() + 10, again)

    clock.timer.schedule(clock.monotonic_ms() + 10, again)
    clock.advance(100)

    assert len(ran) == 3
    assert len(clock.timer) == 0


def test_the_owner_is_woken_only_for_an_earlier_deadline() -> None:
    woken: list[int] = []

    class Woken(Timer):
        def wake_at(self, deadline_ms: int) -> None:
            woken.append(deadline_ms)

    timer = Woken()
    for delay_ms in (50, 100, 10):
        timer.schedule(delay_ms, lambda: None)

    assert woken == [50, 10]


def test_due_tasks_can_be_run_in_portions() -> None:
    clock = MockClock()
    ran: list[int] = []
    for number in range(5):
        clock.timer.schedule(clock.monotonic_ms() + number, partial(ran.append, number))

    portions = [clock.timer.run_due(clock.monotonic_ms() + 5, most=2) for _ in range(4)]

    assert portions == [2, 2, 1, 0]
    assert ran == [0, 1, 2, 3, 4]
