"""The rules for a receiver (KIP-714) or an exporter (KIP-1217)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from odradek.plugin import ClientTelemetryContext, TelemetryRecord
from odradek.testing.contracts import observing
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
from odradek.testing.contracts.rule import Check, RuleBroken, rules
from odradek.testing.contracts.samples import GARBAGE, ONE_CLIENT, SAME_NAMES, Samples, context_of, numbers_of
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
    """A receiver, closed at the end."""
    async with observing.opened(subject) as offer:
        yield Receiving(offer)


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
        await within_budget(EXPORT, receiving.push, lambda: samples.pushes(ROUND), budget_ms)


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


def receives(pushes: Callable[[Samples], Sequence[TelemetryRecord]], why: str) -> Check:
    """All of these pushes arrive."""

    async def check(subject: Subject) -> None:
        records = pushes(Samples())
        async with opened(subject) as receiving:
            receiving.pushes(records)
            await refuse_losses(subject, records, why)

    return check


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
        try:
            await within_budget(EXPORT, receiving.push, lambda: samples.pushes(ROUND), budget_ms)
        except RuleBroken:
            return  # it is slow even with a fast destination, which R1 reports
        subject.turn(FarSideState.SLOW)
        what = f"with a slow destination, {EXPORT}"
        await within_budget(what, receiving.push, lambda: samples.pushes(ROUND), budget_ms)


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
        "terminating": (receives(Samples.terminating, "one of them was terminating"),),
        "huge": (takes_huge,),
        "undecodable": (outlives_undecodable,),
        "concurrent": (takes_concurrent, Capability.CONCURRENT),
        "spoofed": (receives(Samples.spoofed, ONE_CLIENT),),
        "far-side-down": (partial(outlives, state=FarSideState.DOWN), FAR_SIDE),
        "far-side-slow": (waits_for_no_far_side, FAR_SIDE),
        "far-side-refusing": (partial(outlives, state=FarSideState.REFUSING), FAR_SIDE),
        "flushes": (flushes, FAR_SIDE, FLUSH, Capability.CLOSE),
        "accounts": (accounts_for_everything, Capability.ACCOUNTS),
        "answers-as-agreed": (answers_as_agreed,),
        "same-names": (receives(Samples.with_same_names, SAME_NAMES),),
    },
)
EXPORTER_RULES: Final = tuple(replace(rule, kind=Kind.EXPORTER) for rule in RECEIVER_RULES)
