"""The rules for a forwarder. The host runs it on a separate loop, one ``deliver`` at a time."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from odradek.plugin import Forwarder, Reject, Retry, TelemetryRecord
from odradek.testing.contracts import observing
from odradek.testing.contracts.observing import (
    ROUNDS,
    BytesWatch,
    Watch,
    arrivals,
    arrived,
    awaited,
    called,
    closed,
    contents,
    described,
    located,
    refuse_changes,
)
from odradek.testing.contracts.rule import Check, RuleBroken, rules
from odradek.testing.contracts.samples import GARBAGE, ONE_CLIENT, SAME_NAMES, Samples, context_of, numbers_of
from odradek.testing.contracts.subject import FORWARDER_BUDGET_MS, Capability, FarSideState, Kind, Subject

BATCH = 40
"""The host's default batch size."""
TICK_S = 0.005
CANCEL_GRACE_S = 1.0
"""Time to end after a cancellation. The host abandons a call that takes longer."""
HANGING_S = 0.15
RETRY_S = 0.1
Answer = Retry | Reject | None


@asynccontextmanager
async def opened(subject: Subject) -> AsyncIterator[Forwarder]:
    """A forwarder that was started, closed at the end."""
    async with observing.opened(subject) as forwarder:
        await awaited("start", forwarder.start)
        yield forwarder


async def answer_of(forwarder: Forwarder, batch: Sequence[TelemetryRecord]) -> Answer:
    """Deliver a batch and return the Retry or Reject that it raised, or None.

    Raises:
        RuleBroken: It raised another exception.
    """
    try:
        answer: Any = forwarder.deliver(batch)
        if inspect.isawaitable(answer):
            await answer
    except (Retry, Reject) as error:
        return error
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        said = located(error)
        raise RuleBroken(f"deliver raised {said}, expected Retry, Reject or no exception") from error
    return None


async def delivered(
    subject: Subject, forwarder: Forwarder, batch: Sequence[TelemetryRecord], why: str
) -> None:
    """Deliver a good batch and check that it arrives, if the destination is known.

    Raises:
        RuleBroken: Some of it did not arrive, or deliver raised Retry or Reject.
    """
    answer = await answer_of(forwarder, list(batch))
    if subject.far_side is None:
        return
    if answer is not None:
        raise RuleBroken(f"deliver raised {described(answer)} though the destination is up: {why}")
    missing = await arrivals(subject.far_side, numbers_of(batch), subject.patience_s)
    if missing:
        raise RuleBroken(f"{len(missing)} of {len(numbers_of(batch))} pushes did not arrive: {why}")


async def lets_its_loop_turn(subject: Subject) -> None:
    samples, budget_ms = Samples(), subject.budget_ms or FORWARDER_BUDGET_MS
    async with opened(subject) as forwarder:
        longest_ms = 0.0
        for _ in range(ROUNDS):
            longest_ms = await longest_stop_ms(forwarder, [samples.pushes(BATCH) for _ in range(3)])
            if longest_ms <= budget_ms:
                return
    raise RuleBroken(
        f"deliver blocked its event loop for {longest_ms:.0f} ms, the budget is {budget_ms:g} ms: "
        "timeouts and the stop of the host are delayed"
    )


async def longest_stop_ms(forwarder: Forwarder, batches: Sequence[Sequence[TelemetryRecord]]) -> float:
    """The longest time for which another task on the loop could not run."""
    stops_ms = [0.0]

    async def ticking() -> None:
        last_s = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            now_s = time.perf_counter()
            stops_ms.append((now_s - last_s - TICK_S) * 1000)
            last_s = now_s

    ticks = asyncio.create_task(ticking())
    await asyncio.sleep(2 * TICK_S)
    for batch in batches:
        await answer_of(forwarder, list(batch))
    await asyncio.sleep(2 * TICK_S)
    ticks.cancel()
    return max(stops_ms)


async def changes_nothing(subject: Subject) -> None:
    batch = Samples().pushes(3)
    kept, before = list(batch), [contents(record) for record in batch]
    async with opened(subject) as forwarder:
        await answer_of(forwarder, batch)
    if [*map(id, batch)] != [*map(id, kept)]:
        raise RuleBroken(f"deliver changed the batch from {len(kept)} records to {len(batch)}")
    for record, old in zip(kept, before, strict=True):
        refuse_changes(old, contents(record))


async def keeps_nothing(subject: Subject) -> None:
    samples = Samples()
    records = samples.pushes(BATCH)
    watch, bytes_watch = Watch(records), BytesWatch(records[0].payload.data)
    async with opened(subject) as forwarder:
        await answer_of(forwarder, records)
        await answer_of(forwarder, [samples.push(data=bytes_watch.data)])
        records = samples.pushes(1)
        await answer_of(forwarder, records)
        await closed(subject, forwarder)
        await asyncio.sleep(0)
        watch.refuse_leftovers("after close")
        bytes_watch.refuse_leftovers("after close")


async def closes_unused(subject: Subject) -> None:
    forwarder = called("make", subject.make)
    await closed(subject, forwarder, "close without start")
    async with opened(subject) as forwarder:
        await closed(subject, forwarder)
        await closed(subject, forwarder, "the second close")


async def starts_twice(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as one, opened(subject) as other:
        await awaited("the second start", one.start)
        await delivered(subject, one, samples.pushes(1), "after a second start")
        await closed(subject, one)
        await delivered(subject, other, samples.pushes(1), "after another instance was closed")


async def takes_empty(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as forwarder:
        await answer_of(forwarder, [])
        await answer_of(forwarder, [samples.push(data=b"")])
        batch = [samples.push(), samples.push(data=b""), samples.push(context=context_of(None))]
        await delivered(subject, forwarder, batch, "one push was empty and one had no client id")


def delivers(
    batch: Callable[[Samples], Sequence[TelemetryRecord]],
    why: str,
    first: Callable[[Samples], TelemetryRecord] | None = None,
) -> Check:
    """A batch arrives, whatever became of a first push."""

    async def check(subject: Subject) -> None:
        samples = Samples()
        async with opened(subject) as forwarder:
            if first is not None:
                await answer_of(forwarder, [first(samples)])
            await delivered(subject, forwarder, batch(samples), why)

    return check


def one_push(samples: Samples) -> list[TelemetryRecord]:
    return samples.pushes(1)


async def takes_concurrent(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as forwarder:
        batches = [samples.pushes(5) for _ in range(4)]
        await asyncio.gather(
            *(delivered(subject, forwarder, batch, "during concurrent delivers") for batch in batches)
        )


async def asks_to_retry(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as forwarder:
        subject.turn(FarSideState.DOWN)
        batch = samples.pushes(3)
        answer = await answer_of(forwarder, batch)
        if not isinstance(answer, Retry):
            what = "returned" if answer is None else f"raised {described(answer)}"
            raise RuleBroken(f"deliver {what} with the destination down, expected Retry: the pushes are lost")
        subject.turn(FarSideState.UP)
        await recovery(subject, forwarder, batch, "after the destination was down")


async def recovery(
    subject: Subject, forwarder: Forwarder, batch: Sequence[TelemetryRecord], when: str
) -> None:
    """Deliver the batch again, as the host would, and check that it arrives."""
    assert subject.far_side is not None
    deadline_s = time.monotonic() + subject.patience_s
    while (answer := await answer_of(forwarder, list(batch))) and time.monotonic() < deadline_s:
        await asyncio.sleep(RETRY_S)
    missing = await arrivals(subject.far_side, numbers_of(batch), subject.patience_s)
    if missing:
        said = "" if answer is None else f"; the last deliver raised {described(answer)}"
        raise RuleBroken(f"{when}, {len(missing)} of {len(batch)} pushes no longer arrive{said}")


async def ends_when_cancelled(subject: Subject) -> None:
    assert subject.far_side is not None
    samples = Samples()
    async with opened(subject) as forwarder:
        subject.turn(FarSideState.SLOW)
        batch = samples.pushes(3)
        delivering = asyncio.ensure_future(answer_of(forwarder, batch))
        await asyncio.wait({delivering}, timeout=HANGING_S)
        delivering.cancel()
        _, pending = await asyncio.wait({delivering}, timeout=CANCEL_GRACE_S)
        if pending:
            raise RuleBroken(f"deliver was still running {CANCEL_GRACE_S:g} s after its cancellation")
        returned = not delivering.cancelled() and delivering.result() is None
        if returned and numbers_of(batch) - arrived(subject.far_side):
            raise RuleBroken("deliver returned before the slow destination accepted the batch")
        subject.turn(FarSideState.UP)
        await recovery(subject, forwarder, samples.pushes(1), "after the destination was slow")


async def says_that_it_was_refused(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as forwarder:
        subject.turn(FarSideState.REFUSING)
        answer = await answer_of(forwarder, samples.pushes(1))
        if answer is None:
            raise RuleBroken(
                "deliver returned although the destination refused the batch, expected Reject or Retry"
            )
        subject.turn(FarSideState.UP)
        await recovery(subject, forwarder, samples.pushes(1), "after the destination refused a batch")


async def leaves_nothing_behind(subject: Subject) -> None:
    assert subject.far_side is not None
    batch = Samples().pushes(BATCH)
    async with opened(subject) as forwarder:
        answer = await answer_of(forwarder, list(batch))
        await closed(subject, forwarder)
        missing = numbers_of(batch) - arrived(subject.far_side)
        if answer is None and missing:
            raise RuleBroken(
                f"deliver returned, but {len(missing)} of {BATCH} pushes had not arrived after close"
            )
    async with opened(subject) as forwarder:
        subject.turn(FarSideState.SLOW)
        delivering = asyncio.ensure_future(answer_of(forwarder, Samples().pushes(1)))
        await asyncio.wait({delivering}, timeout=HANGING_S)
        delivering.cancel()
        await asyncio.wait({delivering}, timeout=CANCEL_GRACE_S)
        delivering.add_done_callback(lambda done: done.cancelled() or done.exception())
        await closed(subject, forwarder, "close with a slow destination")


async def accounts_for_everything(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as forwarder:
        for state in (FarSideState.UP, FarSideState.REFUSING):
            subject.turn(state)
            batch = [samples.push(), samples.push(data=GARBAGE), samples.push()]
            try:
                answer = await answer_of(forwarder, list(batch))
            except RuleBroken:
                continue  # R14 and R17 check this: the host treats it as a failure of the whole batch
            if answer is not None:
                await refuse_false_claims(subject, batch, answer)


async def refuse_false_claims(
    subject: Subject, batch: Sequence[TelemetryRecord], answer: Retry | Reject
) -> None:
    """Check the claims about single records: each is in the batch, has one outcome, and the claim is true.

    Raises:
        RuleBroken: A claim is false.
    """
    assert subject.far_side is not None
    kind, known = type(answer).__name__, set(map(id, batch))
    refused = list(answer.records) if isinstance(answer, Reject) else []
    strangers = [record for record in [*answer.delivered, *refused] if id(record) not in known]
    if strangers:
        raise RuleBroken(f"{kind} names {len(strangers)} records that were not in the batch")
    twice = set(map(id, answer.delivered)) & set(map(id, refused))
    if twice:
        raise RuleBroken(f"Reject names {len(twice)} records both as delivered and as refused")
    missing = await arrivals(subject.far_side, numbers_of(answer.delivered), subject.patience_s)
    if missing:
        raise RuleBroken(
            f"{kind} names {len(answer.delivered)} records as delivered, {len(missing)} did not arrive"
        )


async def answers_as_agreed(subject: Subject) -> None:
    subject.turn(FarSideState.UP)
    forwarder = called("make", subject.make)
    steps = (("start", ()), ("deliver", (Samples().pushes(1),)), ("close", ()))
    for method, arguments in steps:
        answer = called(method, getattr(forwarder, method), *arguments)
        if not inspect.isawaitable(answer):
            raise RuleBroken(f"{method} is not a coroutine function, but the host awaits its result")
        with contextlib.suppress(Retry, Reject):
            result = await answer
            if result is not None:
                raise RuleBroken(f"{method} returned {type(result).__name__}, expected None")


FAR_SIDE: Final = Capability.FAR_SIDE

FORWARDER_RULES: Final = rules(
    Kind.FORWARDER,
    {
        "returns-in-time": (lets_its_loop_turn,),
        "changes-nothing": (changes_nothing,),
        "keeps-nothing": (keeps_nothing,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (starts_twice,),
        "empty": (takes_empty,),
        "terminating": (delivers(Samples.terminating, "one of them was terminating"),),
        "huge": (delivers(one_push, "after a huge push", Samples.huge),),
        "undecodable": (
            delivers(one_push, "after an undecodable push", lambda samples: samples.push(data=GARBAGE)),
        ),
        "concurrent": (takes_concurrent, Capability.CONCURRENT),
        "spoofed": (delivers(Samples.spoofed, ONE_CLIENT),),
        "far-side-down": (asks_to_retry, FAR_SIDE),
        "far-side-slow": (ends_when_cancelled, FAR_SIDE),
        "far-side-refusing": (says_that_it_was_refused, FAR_SIDE),
        "flushes": (leaves_nothing_behind, FAR_SIDE),
        "accounts": (accounts_for_everything, FAR_SIDE),
        "answers-as-agreed": (answers_as_agreed,),
        "same-names": (delivers(Samples.with_same_names, SAME_NAMES),),
    },
)
