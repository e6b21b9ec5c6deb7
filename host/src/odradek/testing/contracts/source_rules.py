"""The rules for a source. The host runs it on a separate loop, and calls ``run`` again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from odradek.plugin import Receipt, Refused, Source, TelemetryRecord
from odradek.testing.contracts.forwarder_rules import CANCEL_GRACE_S, HANGING_S, TICK_S
from odradek.testing.contracts.observing import ROUNDS, STEP_S, called, closes_unused, located
from odradek.testing.contracts.rule import RuleBroken, rules
from odradek.testing.contracts.samples import GARBAGE, Samples, numbers_in, numbers_of
from odradek.testing.contracts.subject import FORWARDER_BUDGET_MS, Capability, FarSideState, Kind, Subject

PUSHES: Final = 8
AGAIN_S: Final = 0.05
"""The wait of the kit after ``run`` has ended; a host waits a second or longer."""


@dataclass(eq=False)
class KitIntake:
    """The host's side, scripted."""

    room: int | None = None
    """Records that it takes in one call; None for all."""
    is_stuck: bool = False
    """It stores nothing, and does not answer."""
    stored: list[TelemetryRecord] = field(default_factory=list)
    calls: int = 0
    skipped: int = 0

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        self.calls += 1
        if self.is_stuck:
            await asyncio.Event().wait()
        receipt = Receipt()
        room = len(records) if self.room is None else self.room
        for record in records:
            if record.payload.data == GARBAGE:
                receipt.refused.append(Refused(record, "not OTLP"))
            elif receipt.stored == room:
                receipt.left.append(record)
            else:
                receipt.stored += 1
                self.stored.append(record)
        return receipt

    def listening(self) -> None:
        pass

    def unreadable(self, records: int) -> None:
        self.skipped += records

    def answered(self, outcome: str) -> None:
        pass

    @property
    def numbers(self) -> list[int]:
        """The numbers of the stored pushes, in order."""
        return [number for record in self.stored for number in numbers_of([record])]


class Running:
    """A source that runs as in a host."""

    def __init__(self, source: Source, intake: KitIntake) -> None:
        self.source = source
        self.problem = ""
        """The last error that ended ``run``."""
        self.task = asyncio.ensure_future(self.keep_running(intake))

    async def keep_running(self, intake: KitIntake) -> None:
        while True:
            try:
                answer = self.source.run(intake)
                if inspect.isawaitable(answer):
                    await answer
                self.problem = "run returned"
            except (Exception, SystemExit) as error:  # noqa: BLE001  as the host
                self.problem = f"run raised {located(error)}"
            await asyncio.sleep(AGAIN_S)

    async def cancelled(self, within_s: float) -> bool:
        """Cancel the call; return whether it ended in time."""
        self.task.cancel()
        _, pending = await asyncio.wait({self.task}, timeout=within_s)
        return not pending

    async def stop(self) -> None:
        """Cancel the call.

        Raises:
            RuleBroken: It does not end.
        """
        if not await self.cancelled(CANCEL_GRACE_S):
            raise RuleBroken(f"run was still running {CANCEL_GRACE_S:g} s after its cancellation")


@asynccontextmanager
async def running(subject: Subject, intake: KitIntake) -> AsyncIterator[Running]:
    """Yield a new source that runs."""
    source: Source = called("make", subject.make)
    run = Running(source, intake)
    try:
        yield run
    finally:
        subject.turn(FarSideState.UP)
        with contextlib.suppress(RuleBroken):
            await run.stop()
        if callable(close := getattr(source, "close", None)):
            close()


def put(subject: Subject, pushes: Sequence[TelemetryRecord]) -> list[int]:
    """Put pushes at the place of origin; return their numbers in order."""
    assert subject.supply is not None
    subject.supply.put(pushes)
    return [number for push in pushes for number in sorted(numbers_in([push.payload.data]))]


async def stored(subject: Subject, run: Running, intake: KitIntake, wanted: Sequence[int], why: str) -> None:
    """Wait until pushes are stored.

    Raises:
        RuleBroken: Some of them were not.
    """
    if not await until(lambda: set(wanted) <= set(intake.numbers), subject.patience_s):
        missing = len(set(wanted) - set(intake.numbers))
        said = f"; {run.problem}" if run.problem else ""
        raise RuleBroken(f"{missing} of {len(wanted)} pushes did not arrive: {why}{said}")


async def until(condition: Callable[[], bool], within_s: float) -> bool:
    """Wait for a condition; return whether it became true in time."""
    deadline_s = time.monotonic() + within_s
    while not (found := condition()) and time.monotonic() < deadline_s:
        await asyncio.sleep(STEP_S)
    return found


async def lets_its_loop_turn(subject: Subject) -> None:
    intake, budget_ms = KitIntake(), subject.budget_ms or FORWARDER_BUDGET_MS
    longest_ms = 0.0
    async with running(subject, intake):
        for _ in range(ROUNDS):
            if subject.supply is not None:
                put(subject, Samples().pushes(PUSHES))
            longest_ms = 0.0
            last_s = begun_s = time.perf_counter()
            while last_s - begun_s < 2 * HANGING_S:
                await asyncio.sleep(TICK_S)
                now_s = time.perf_counter()
                longest_ms, last_s = max(longest_ms, (now_s - last_s - TICK_S) * 1000), now_s
            if longest_ms <= budget_ms:
                return
    raise RuleBroken(
        f"run blocked its event loop for {longest_ms:.0f} ms, the budget is {budget_ms:g} ms: "
        "the stop of the host is delayed"
    )


async def runs_twice(subject: Subject) -> None:
    intakes = KitIntake(), KitIntake()
    async with running(subject, intakes[0]) as one:
        other = called("make", subject.make)
        beside = Running(other, intakes[1])
        await asyncio.sleep(AGAIN_S)
        await beside.stop()
        if callable(close := getattr(other, "close", None)):
            called("close", close)
        wanted = put(subject, Samples().pushes(1))
        await stored(subject, one, intakes[0], wanted, "after another instance was stopped")
        await one.stop()
        again = Running(one.source, intakes[0])
        wanted = put(subject, Samples().pushes(1))
        try:
            await stored(subject, again, intakes[0], wanted, "after run was cancelled and called again")
        finally:
            await again.stop()


async def passes_over_garbage(subject: Subject) -> None:
    samples, intake = Samples(), KitIntake()
    async with running(subject, intake) as run:
        put(subject, [samples.push(data=GARBAGE)])
        wanted = put(subject, samples.pushes(1))
        await stored(subject, run, intake, wanted, "after a push that the host refused")


async def outlives_its_origin(subject: Subject) -> None:
    intake = KitIntake()
    subject.turn(FarSideState.DOWN)
    async with running(subject, intake) as run:
        await asyncio.sleep(HANGING_S)
        subject.turn(FarSideState.UP)
        wanted = put(subject, Samples().pushes(1))
        await stored(subject, run, intake, wanted, "after the place of origin was down")


async def ends_when_cancelled(subject: Subject) -> None:
    intake = KitIntake(is_stuck=True)
    async with running(subject, intake) as run:
        put(subject, Samples().pushes(1))
        if not await until(lambda: intake.calls > 0, subject.patience_s):
            raise RuleBroken(f"the source did not store a push {run.problem}".rstrip())
        await run.stop()


async def repeats_what_is_not_stored(subject: Subject) -> None:
    stuck, intake = KitIntake(is_stuck=True), KitIntake()
    async with running(subject, stuck) as run:
        wanted = put(subject, Samples().pushes(PUSHES))
        await until(lambda: stuck.calls > 0, subject.patience_s)
        await run.cancelled(subject.close_s)
        again = Running(run.source, intake)
        try:
            await stored(subject, again, intake, wanted, "they were not stored when run was cancelled")
        finally:
            await again.stop()


async def offers_again(subject: Subject) -> None:
    intake = KitIntake(room=0)
    async with running(subject, intake) as run:
        wanted = put(subject, Samples().pushes(PUSHES))
        await until(lambda: intake.calls > 1, subject.patience_s)
        intake.room = 1
        await stored(subject, run, intake, wanted, "the host had no room for them at first")
        first = list(dict.fromkeys(intake.numbers))
        if first != wanted:
            raise RuleBroken("the pushes were stored in another order, because the host had no room at first")


async def answers_as_agreed(subject: Subject) -> None:
    async with running(subject, KitIntake()) as run:
        if not inspect.iscoroutinefunction(run.source.run):
            raise RuleBroken("run is not a coroutine function, but the host awaits its result")
        for _ in range(2):
            lag: object = called("lag", run.source.lag)
            if lag is not None and (not isinstance(lag, int) or isinstance(lag, bool) or lag < 0):
                raise RuleBroken(f"lag returned {lag!r}, expected None or a whole number of at least 0")
            await asyncio.sleep(HANGING_S)


SUPPLY: Final = Capability.SUPPLY

SOURCE_RULES: Final = rules(
    Kind.SOURCE,
    {
        "returns-in-time": (lets_its_loop_turn,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (runs_twice, SUPPLY),
        "undecodable": (passes_over_garbage, SUPPLY),
        "far-side-down": (outlives_its_origin, Capability.FAR_SIDE, SUPPLY),
        "far-side-slow": (ends_when_cancelled, SUPPLY),
        "flushes": (repeats_what_is_not_stored, SUPPLY),
        "accounts": (offers_again, SUPPLY),
        "answers-as-agreed": (answers_as_agreed,),
    },
)
