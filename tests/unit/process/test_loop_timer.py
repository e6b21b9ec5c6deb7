"""The timer of a program on a real loop with a mock clock: no test waits for wall time."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from odradek.process.loop_timer import CATCH_UP_MS, MOST_AT_ONCE, STOOD_STILL_MS, LoopTimer
from odradek.testing.clock import MockClock


async def turns() -> None:
    """Let the loop run everything that is due on its own clock."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_due_actions_run_and_the_others_wait() -> None:
    clock = MockClock()
    ran: list[str] = []
    timer = LoopTimer(clock)

    async def scenario() -> int | None:
        timer.start()
        timer.schedule(clock.monotonic_ms() + 60_000, lambda: ran.append("late"))
        timer.schedule(clock.monotonic_ms(), lambda: ran.append("now"))
        await turns()
        deadline_ms = timer.next_deadline_ms()
        timer.stop()
        return deadline_ms

    deadline_ms = asyncio.run(scenario())

    assert ran == ["now"]
    assert deadline_ms == clock.monotonic_ms() + 60_000


def test_an_action_that_raises_does_not_stop_the_others() -> None:
    clock = MockClock()
    ran: list[str] = []

    def fail() -> None:
        raise ValueError("of the test")

    timer = LoopTimer(clock)

    async def scenario() -> None:
        timer.start()
        timer.schedule(clock.monotonic_ms(), fail)
        timer.schedule(clock.monotonic_ms(), lambda: ran.append("after"))
        await turns()
        timer.stop()

    asyncio.run(scenario())

    assert ran == ["after"]


def test_a_stopped_timer_never_wakes_up() -> None:
    clock = MockClock()
    ran: list[str] = []
    timer = LoopTimer(clock)

    async def scenario() -> None:
        timer.start()
        timer.stop()
        timer.schedule(clock.monotonic_ms(), lambda: ran.append("never"))
        await turns()

    asyncio.run(scenario())

    assert ran == []


def test_many_due_actions_let_others_run_in_between() -> None:
    clock = MockClock()
    ran: list[int] = []
    seen: list[int] = []
    timer = LoopTimer(clock)

    async def scenario() -> None:
        for number in range(2 * MOST_AT_ONCE):
            timer.schedule(clock.monotonic_ms(), partial(ran.append, number))
        timer.start()
        seen.append(len(ran))
        await turns()
        timer.stop()

    asyncio.run(scenario())

    assert seen == [MOST_AT_ONCE]
    assert ran == list(range(2 * MOST_AT_ONCE))


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000], ids=["back", "forward"])
def test_the_timer_wakes_up_in_time_when_the_clock_is_set(jump_ms: int) -> None:
    clock = MockClock()
    ran: list[str] = []
    timer = LoopTimer(clock)

    async def scenario() -> list[float]:
        timer.start()
        waits_s = []
        timer.schedule(clock.monotonic_ms() + 60_000, lambda: ran.append("first"))
        for set_by_ms in (jump_ms, -jump_ms):
            clock.jump(set_by_ms)
            timer.run()  # a turn in which nothing is due
            assert timer.handle is not None
            waits_s.append(timer.handle.when() - timer.loop.time())
        clock.time_ms += 60_000
        timer.schedule(clock.monotonic_ms(), lambda: ran.append("second"))
        timer.run()
        timer.stop()
        return waits_s

    waits_s = asyncio.run(scenario())

    assert waits_s == [pytest.approx(60, abs=1)] * 2
    assert ran == ["first", "second"]


def test_deadlines_wait_until_sockets_were_served_after_a_standstill() -> None:
    clock = MockClock()
    ran: list[str] = []
    timer = LoopTimer(clock)

    async def scenario() -> float:
        timer.schedule(clock.monotonic_ms() + 6_000, lambda: ran.append("session ended"))
        timer.start()
        clock.time_ms += 6_000 + STOOD_STILL_MS
        timer.run()
        assert ran == []
        timer.schedule(clock.monotonic_ms(), lambda: ran.append("new and due"))
        assert timer.handle is not None
        wait_s = timer.handle.when() - timer.loop.time()
        clock.time_ms += CATCH_UP_MS + 2 * STOOD_STILL_MS
        timer.run()
        timer.stop()
        return wait_s

    wait_s = asyncio.run(scenario())

    assert wait_s == pytest.approx(CATCH_UP_MS / 1000, abs=0.4)
    assert ran == ["session ended", "new and due"]


def test_a_wake_up_that_is_a_little_late_runs_what_is_due() -> None:
    clock = MockClock()
    ran: list[str] = []
    timer = LoopTimer(clock)

    async def scenario() -> None:
        timer.schedule(clock.monotonic_ms() + 6_000, lambda: ran.append("session ended"))
        timer.start()
        clock.time_ms += 6_000 + STOOD_STILL_MS - 1
        timer.run()
        timer.stop()

    asyncio.run(scenario())

    assert ran == ["session ended"]
