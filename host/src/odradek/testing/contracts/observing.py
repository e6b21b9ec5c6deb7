"""Checks shared by all rules: durations, changes, references, arrivals."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import sys
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any, TypeVar

from odradek.plugin import TelemetryRecord
from odradek.plugin.places import place_of
from odradek.testing.contracts.rule import Check, RuleBroken
from odradek.testing.contracts.samples import numbers_in
from odradek.testing.contracts.subject import FarSide, FarSideState, Subject

ROUNDS = 5
"""Attempts per timing check. Only slowness in every round fails, because other processes also need time."""
STEP_S = 0.01
Item = TypeVar("Item")


def called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the plugin and return the result.

    Raises:
        RuleBroken: The call raised any exception.
    """
    try:
        return function(*arguments)
    except RuleBroken:
        raise
    except BaseException as error:
        raise RuleBroken(f"{what} raised {located(error)}") from error


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def located(error: BaseException) -> str:
    """The error of a bug, and the line that raised it."""
    return described(error) + place_of(error)


async def awaited(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call and await a coroutine function. R17 checks that it is one; here a plain result is accepted."""
    try:
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except RuleBroken:
        raise
    except BaseException as error:
        raise RuleBroken(f"{what} raised {located(error)}") from error


def timed_ms(function: Callable[..., Any], *arguments: Any) -> float:
    """The duration of one call, milliseconds."""
    started_ns = time.perf_counter_ns()
    function(*arguments)
    return (time.perf_counter_ns() - started_ns) / 1e6


async def within_budget(
    what: str, call: Callable[[Item], Any], items: Callable[[], Sequence[Item]], budget_ms: float
) -> None:
    """Check that there is a round in which each call finishes within the budget.

    Args:
        what: The name of the method.
        call: Calls it.
        items: Returns what a new round calls it with.
        budget_ms: Milliseconds for each call.

    Raises:
        RuleBroken: Every round had a call that took longer.
    """
    slowest_ms = 0.0
    for _ in range(ROUNDS):
        for item in items():
            slowest_ms = timed_ms(called, what, call, item)
            await asyncio.sleep(0)
            if slowest_ms > budget_ms:
                break
        else:
            return
    raise RuleBroken(
        f"{what} took {slowest_ms:.1f} ms, the budget is {budget_ms:g} ms: it blocks the whole host"
    )


def contents(record: TelemetryRecord) -> list[tuple[str, object]]:
    """All fields of a record by name, including those of its connection."""
    context, payload = record.context, record.payload
    return [
        *((f"payload.{field.name}", getattr(payload, field.name)) for field in fields(payload)),
        *((f"context.{field.name}", getattr(context, field.name)) for field in fields(context)),
        *((field.name, getattr(context.connection, field.name)) for field in fields(context.connection)),
    ]


def refuse_changes(before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]) -> None:
    """Check that the contents are equal.

    Raises:
        RuleBroken: The plugin changed a field.
    """
    for (name, old), (_, new) in zip(before, after, strict=True):
        if new is not old and new != old:
            raise RuleBroken(
                f"the plugin changed {name} from {shown(old)} to {shown(new)}: all plugins share the object"
            )


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Watch:
    """Detects whether records are still referenced, without referencing them itself."""

    def __init__(self, records: Sequence[TelemetryRecord]) -> None:
        self.parts = [
            (name, weakref.ref(part))
            for record in records
            for name, part in (("payload", record.payload), ("context", record.context))
        ]

    def kept(self) -> list[str]:
        """The names of the parts that are still referenced."""
        gc.collect()
        return [name for name, part in self.parts if part() is not None]

    def refuse_leftovers(self, when: str) -> None:
        """Check that no object survives, after the caller has dropped its own references.

        Raises:
            RuleBroken: The plugin keeps some of them.
        """
        kept = self.kept()
        if kept:
            raise RuleBroken(
                f"{when}, the plugin still holds {len(kept)} of {len(self.parts)} objects, one is a {kept[0]}"
            )


class BytesWatch:
    """Detects whether the bytes of a payload are still referenced; bytes have no weak references."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(bytearray(data))
        self.references = sys.getrefcount(self.data)

    def refuse_leftovers(self, when: str) -> None:
        """Check that no new reference to the bytes exists.

        Raises:
            RuleBroken: The plugin keeps the bytes.
        """
        gc.collect()
        if sys.getrefcount(self.data) > self.references:
            raise RuleBroken(f"{when}, the plugin still holds the bytes of the payload")


def arrived(far_side: FarSide) -> set[int]:
    """The numbers of the pushes that the destination has accepted."""
    return numbers_in(far_side.received())


async def arrivals(far_side: FarSide, numbers: set[int], within_s: float) -> set[int]:
    """Wait for pushes to arrive and return the numbers of those still missing at the timeout."""
    deadline_s = time.monotonic() + within_s
    while (missing := numbers - arrived(far_side)) and time.monotonic() < deadline_s:
        await asyncio.sleep(STEP_S)
    return missing


async def closed(subject: Subject, offer: Any, what: str = "close") -> None:
    """Close an object as the host does: on the loop, and awaited if it is a forwarder.

    Raises:
        RuleBroken: Closing raised an exception or took too long.
    """
    close = getattr(offer, "close", None)
    if not callable(close):
        return
    started_s = time.monotonic()
    await awaited(what, close)
    took_s = time.monotonic() - started_s
    if took_s > subject.close_s:
        raise RuleBroken(f"{what} took {took_s:.1f} s, the deadline is {subject.close_s:g} s")


@asynccontextmanager
async def opened(subject: Subject) -> AsyncIterator[Any]:
    """An object of the plugin, closed at the end. The far side is up at both ends."""
    subject.turn(FarSideState.UP)
    offer = called("make", subject.make)
    try:
        yield offer
    finally:
        subject.turn(FarSideState.UP)
        with contextlib.suppress(RuleBroken):
            await closed(subject, offer)


def taken_by(use: Callable[[Any, Item], object], *items: Item) -> Check:
    """The plugin accepts each of these."""

    async def takes(subject: Subject) -> None:
        async with opened(subject) as offer:
            for item in items:
                await settled(use(offer, item))

    return takes


def beside_another(use: Callable[[Any, Item], object], item: Item) -> Check:
    """The plugin works after another one of its kind was closed."""

    async def stands(subject: Subject) -> None:
        async with opened(subject) as one, opened(subject) as other:
            await settled(use(one, item))
            with contextlib.suppress(RuleBroken):
                await closed(subject, one)
            await settled(use(other, item))

    return stands


async def settled(answer: object) -> None:
    """Wait for what a coroutine function returned."""
    if inspect.isawaitable(answer):
        await answer


async def closes_unused(subject: Subject) -> None:
    """The rule for all kinds except forwarders, which also have a start."""
    subject.turn(FarSideState.UP)
    offer = called("make", subject.make)
    await closed(subject, offer, "close before the first call")
    await closed(subject, offer, "the second close")
