"""The rules for a receiver (KIP-714) or an exporter (KIP-1217)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from odradek.plugin import ClientTelemetryContext, TelemetryRecord
from odradek.testing.contracts.observing import (
    BytesWatch,
    Watch,
    arrivals,
    called,
    closed,
    closes_unused,
    contents,
    located,
    refuse_changes,
    within_budget,
)
from odradek.testing.contracts.rule import RuleBroken, rules
from odradek.testing.contracts.samples import GARBAGE, Samples, context_of, numbers_of
from odradek.testing.contracts.subject import BUDGET_MS, Capability, FarSideState, Kind, Subject

ROUND = 20
THREADS, PER_THREAD = 4, 10
EXPORT: Final = "export_metrics"


class Receiving:
    """Calls the object that a hook returned as the host would."""

    def __init__(self, offer: Any) -> None:
        self.offer = offer
        self.given = 0
        """Number of pushes that it accepted without an exception."""
        self.export, self.is_exporter = export_of(offer)

    def push(self, record: TelemetryRecord) -> None:
        """Pass one push to the plugin. Exceptions of the plugin propagate."""
        answer = self.export(
            ClientTelemetryContext(record.push_interval_ms, record.context)
            if self.is_exporter
            else record.context,
            record.payload,
        )
        if inspect.iscoroutine(answer):
            answer.close()
        self.given += 1

    def pushes(self, records: Sequence[TelemetryRecord]) -> None:
        """Pass good pushes to the plugin.

        Raises:
            RuleBroken: The plugin raised an exception.
        """
        for record in records:
            called(EXPORT, self.push, record)


def export_of(offer: Any) -> tuple[Callable[..., Any], bool]:
    """The method that takes pushes, and whether it belongs to an exporter."""
    for method, is_exporter in (("client_telemetry_exporter", True), ("client_receiver", False)):
        if hasattr(offer, method):
            receiver = called(method, getattr(offer, method))
            if receiver is None:
                raise RuleBroken(f"{method} returned None: the plugin is inactive with this configuration")
            return receiver.export_metrics, is_exporter
    return offer.export_metrics, False


@asynccontextmanager
async def opened(subject: Subject) -> AsyncIterator[Receiving]:
    """Yield a new receiver whose destination is up. Errors of the final close are ignored here."""
    subject.turn(FarSideState.UP)
    receiving = Receiving(called("make", subject.make))
    try:
        yield receiving
    finally:
        subject.turn(FarSideState.UP)
        with contextlib.suppress(RuleBroken):
            await closed(subject, receiving.offer)


async def refuse_losses(subject: Subject, records: Sequence[TelemetryRecord], why: str) -> None:
    """Check that all pushes arrive, if the destination is known.

    Raises:
        RuleBroken: Some did not arrive.
    """
    if subject.far_side is not None:
        missing = await arrivals(subject.far_side, numbers_of(records), subject.patience_s)
        if missing:
            raise RuleBroken(f"{len(missing)} of {len(records)} pushes did not arrive: {why}")


async def returns_in_time(subject: Subject) -> None:
    samples, budget_ms = Samples(), subject.budget_ms or BUDGET_MS
    async with opened(subject) as receiving:

        def calls() -> list[Callable[[], None]]:
            return [call_of(receiving, record) for record in samples.pushes(ROUND)]

        await within_budget(EXPORT, calls, budget_ms)


def call_of(receiving: Receiving, record: TelemetryRecord) -> Callable[[], None]:
    return lambda: receiving.push(record)


async def changes_nothing(subject: Subject) -> None:
    record = Samples().push(labels={"team": "payments"})
    before = contents(record)
    async with opened(subject) as receiving:
        receiving.pushes([record])
        await asyncio.sleep(0)
        refuse_changes(before, contents(record))


async def keeps_nothing(subject: Subject) -> None:
    samples = Samples()
    in_background = subject.lacks(Capability.FLUSH) is None
    records = samples.pushes(ROUND)
    watch, bytes_watch = Watch(records), BytesWatch(records[0].payload.data)
    async with opened(subject) as receiving:
        receiving.pushes(records)
        records.clear()
        receiving.pushes([samples.push(data=bytes_watch.data)])
        receiving.pushes(samples.pushes(1))
        await asyncio.sleep(0)
        if in_background:
            await closed(subject, receiving.offer)
        when = "after close" if in_background else "after its calls"
        watch.refuse_leftovers(when)
        bytes_watch.refuse_leftovers(when)


async def stands_beside_another(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as one, opened(subject) as other:
        one.pushes(samples.pushes(1))
        other.pushes(samples.pushes(1))
        with contextlib.suppress(RuleBroken):
            await closed(subject, one.offer)
        other.pushes(samples.pushes(2))


async def takes_empty(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        receiving.pushes(
            [samples.push(data=b""), samples.push(metrics=0), samples.push(context=context_of(None))]
        )


async def takes_terminating(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        records = [samples.push(), samples.push(terminating=True), samples.push()]
        receiving.pushes(records)
        await refuse_losses(subject, records, "one of them was terminating")


async def takes_huge(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        receiving.pushes([samples.huge(), samples.push()])


async def outlives_undecodable(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        receiving.pushes(samples.pushes(1))
        bad(receiving, samples.push(data=GARBAGE))
        good = samples.push()
        receiving.pushes([good])
        await refuse_losses(subject, [good], "after an undecodable push")


def bad(receiving: Receiving, record: TelemetryRecord) -> None:
    """Pass a push that the plugin may refuse by an ordinary exception.

    Raises:
        RuleBroken: The plugin raised another BaseException.
    """
    try:
        receiving.push(record)
    except Exception:  # noqa: BLE001  the host counts any exception as a failure
        return
    except BaseException as error:
        raise RuleBroken(f"{EXPORT} raised {located(error)} for a payload that is not OTLP") from error


async def takes_concurrent(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        shares = [samples.pushes(PER_THREAD) for _ in range(THREADS)]
        await asyncio.gather(*(asyncio.to_thread(receiving.pushes, share) for share in shares))
        every = [record for share in shares for record in share]
        await refuse_losses(subject, every, f"{THREADS} threads pushed concurrently")


async def sees_through_spoofed(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        records = samples.spoofed()
        receiving.pushes(records)
        await refuse_losses(subject, records, "their labels claim that they come from one client")


async def takes_same_names(subject: Subject) -> None:
    samples = Samples()
    async with opened(subject) as receiving:
        records = samples.with_same_names()
        receiving.pushes(records)
        await refuse_losses(subject, records, "labels have the names of attributes")


async def outlives_far_side_down(subject: Subject) -> None:
    await outlives(subject, FarSideState.DOWN)


async def outlives_far_side_refusing(subject: Subject) -> None:
    await outlives(subject, FarSideState.REFUSING)


async def outlives(subject: Subject, state: FarSideState) -> None:
    """Check that the plugin still accepts pushes, and delivers again when the destination is back."""
    samples = Samples()
    async with opened(subject) as receiving:
        subject.turn(state)
        receiving.pushes(samples.pushes(ROUND))
        await asyncio.sleep(0.05)
        subject.turn(FarSideState.UP)
        await recovery(subject, receiving, samples, f"after the destination was {state.value}")


async def recovery(subject: Subject, receiving: Receiving, samples: Samples, when: str) -> None:
    """Check that new pushes arrive again.

    Raises:
        RuleBroken: No push arrived in time.
    """
    assert subject.far_side is not None
    deadline_s = time.monotonic() + subject.patience_s
    while time.monotonic() < deadline_s:
        record = samples.push()
        receiving.pushes([record])
        if not await arrivals(subject.far_side, numbers_of([record]), within_s=0.1):
            return
    raise RuleBroken(f"{when}, pushes no longer arrive")


async def waits_for_no_far_side(subject: Subject) -> None:
    samples, budget_ms = Samples(), subject.budget_ms or BUDGET_MS
    async with opened(subject) as receiving:

        def calls() -> list[Callable[[], None]]:
            return [call_of(receiving, record) for record in samples.pushes(ROUND)]

        try:
            await within_budget(EXPORT, calls, budget_ms)
        except RuleBroken:
            return  # it is slow even with a fast destination, which R1 reports
        subject.turn(FarSideState.SLOW)
        await within_budget(f"with a slow destination, {EXPORT}", calls, budget_ms)


async def flushes(subject: Subject) -> None:
    assert subject.far_side is not None
    records = Samples().pushes(ROUND)
    async with opened(subject) as receiving:
        receiving.pushes(records)
        await closed(subject, receiving.offer)
        missing = await arrivals(subject.far_side, numbers_of(records), within_s=0)
        if missing:
            raise RuleBroken(f"{len(missing)} of {len(records)} pushes had not arrived when close returned")
    async with opened(subject) as receiving:
        subject.turn(FarSideState.SLOW)
        receiving.pushes(Samples().pushes(ROUND))
        await closed(subject, receiving.offer, "close with a slow destination")


async def accounts_for_everything(subject: Subject) -> None:
    assert subject.accounts is not None
    samples = Samples()
    async with opened(subject) as receiving:
        receiving.pushes(samples.pushes(ROUND))
        balanced(subject, receiving, "after good pushes")
        bad(receiving, samples.push(data=GARBAGE))
        balanced(subject, receiving, "after an undecodable push")
        subject.turn(FarSideState.DOWN)
        receiving.pushes(samples.pushes(ROUND))
        balanced(subject, receiving, "with the destination down")
        subject.turn(FarSideState.UP)
        await closed(subject, receiving.offer)
        balanced(subject, receiving, "after close")
        if waiting := subject.accounts(receiving.offer).waiting:
            raise RuleBroken(f"after close, {waiting} pushes are still waiting and will never be delivered")


def balanced(subject: Subject, receiving: Receiving, when: str) -> None:
    """Check that delivered, dropped and waiting pushes add up to those accepted without an exception.

    Raises:
        RuleBroken: They do not. The host counts pushes for which the plugin raised.
    """
    assert subject.accounts is not None
    accounts = subject.accounts(receiving.offer)
    if accounts.total != receiving.given:
        raise RuleBroken(
            f"{when}, it has accepted {receiving.given} pushes but accounts for {accounts.total}: {accounts}"
        )


async def answers_as_agreed(subject: Subject) -> None:
    record = Samples().push()
    async with opened(subject) as receiving:
        context: Any = record.context
        if receiving.is_exporter:
            context = ClientTelemetryContext(record.push_interval_ms, record.context)
        answer = called(EXPORT, receiving.export, context, record.payload)
        if inspect.iscoroutine(answer):
            answer.close()
            raise RuleBroken(
                f"{EXPORT} is a coroutine function: the host does not await it, so it never runs"
            )
        if answer is not None:
            raise RuleBroken(f"{EXPORT} returned {type(answer).__name__}, expected None")


FAR_SIDE, FLUSH = Capability.FAR_SIDE, Capability.FLUSH

RECEIVER_RULES: Final = rules(
    Kind.RECEIVER,
    {
        "returns-in-time": (returns_in_time,),
        "changes-nothing": (changes_nothing,),
        "keeps-nothing": (keeps_nothing,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (stands_beside_another,),
        "empty": (takes_empty,),
        "terminating": (takes_terminating,),
        "huge": (takes_huge,),
        "undecodable": (outlives_undecodable,),
        "concurrent": (takes_concurrent, Capability.CONCURRENT),
        "spoofed": (sees_through_spoofed,),
        "far-side-down": (outlives_far_side_down, FAR_SIDE),
        "far-side-slow": (waits_for_no_far_side, FAR_SIDE),
        "far-side-refusing": (outlives_far_side_refusing, FAR_SIDE),
        "flushes": (flushes, FAR_SIDE, FLUSH, Capability.CLOSE),
        "accounts": (accounts_for_everything, Capability.ACCOUNTS),
        "answers-as-agreed": (answers_as_agreed,),
        "same-names": (takes_same_names,),
    },
)
EXPORTER_RULES: Final = tuple(replace(rule, kind=Kind.EXPORTER) for rule in RECEIVER_RULES)
