"""What rules of all kinds look at: time, changes, references, arrivals."""

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
from typing import Any

from odradek.plugin import TelemetryRecord
from odradek.testing.contracts.rule import RuleBroken
from odradek.testing.contracts.samples import numbers_in
from odradek.testing.contracts.subject import FarSide, FarSideState, Subject

ROUNDS = 5
"""Another process may take the processor for a while: slow is what is slow in each round."""
STEP_S = 0.01


def called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the plugin.

    Raises:
        RuleBroken: It raised, whatever.
    """
    try:
        return function(*arguments)
    except RuleBroken:
        raise
    except BaseException as error:
        raise RuleBroken(f"{what} raised {described(error)}") from error


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def awaited(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The same for a coroutine; one that is none is another rule's business."""
    try:
        answer = function(*arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except RuleBroken:
        raise
    except BaseException as error:
        raise RuleBroken(f"{what} raised {described(error)}") from error


def timed_ms(function: Callable[..., Any], *arguments: Any) -> float:
    """How long one call takes, milliseconds."""
    started_ns = time.perf_counter_ns()
    function(*arguments)
    return (time.perf_counter_ns() - started_ns) / 1e6


async def within_budget(
    what: str, calls: Callable[[], Sequence[Callable[[], Any]]], budget_ms: float
) -> None:
    """Each call of some round is over within the budget.

    Args:
        what: The method's name.
        calls: A round of them.
        budget_ms: Milliseconds for each.
    """
    slowest_ms = 0.0
    for _ in range(ROUNDS):
        for call in calls():
            slowest_ms = timed_ms(called, what, call)
            await asyncio.sleep(0)
            if slowest_ms > budget_ms:
                break
        else:
            return
    raise RuleBroken(
        f"{what} took {slowest_ms:.1f} ms, the budget is {budget_ms:g} ms; the host stands still"
    )


def contents(record: TelemetryRecord) -> list[tuple[str, object]]:
    """All that a record says, the connection included."""
    context, payload = record.context, record.payload
    return [
        *((f"payload.{field.name}", getattr(payload, field.name)) for field in fields(payload)),
        *((f"context.{field.name}", getattr(context, field.name)) for field in fields(context)),
        *((field.name, getattr(context.connection, field.name)) for field in fields(context.connection)),
    ]


def refuse_changes(before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]) -> None:
    """Both say the same.

    Raises:
        RuleBroken: The plugin changed a field.
    """
    for (name, old), (_, new) in zip(before, after, strict=True):
        if new is not old and new != old:
            raise RuleBroken(
                f"it changed {name} from {shown(old)} to {shown(new)}; all plugins share the object"
            )


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Watch:
    """Knows whether somebody still has the records it was shown, without having them itself."""

    def __init__(self, records: Sequence[TelemetryRecord]) -> None:
        self.parts = [
            (name, weakref.ref(part))
            for record in records
            for name, part in (("payload", record.payload), ("context", record.context))
        ]

    def refuse_leftovers(self, when: str) -> None:
        """Nothing is left once the caller has let go.

        Raises:
            RuleBroken: The plugin keeps some of it.
        """
        gc.collect()
        kept = [name for name, part in self.parts if part() is not None]
        if kept:
            raise RuleBroken(f"{when}, it still has {len(kept)} of {len(self.parts)} objects: a {kept[0]}")


class BytesWatch:
    """The same for the bytes of a payload, which cannot be referenced weakly."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(bytearray(data))
        self.references = sys.getrefcount(self.data)

    def refuse_leftovers(self, when: str) -> None:
        """Raises: RuleBroken: Somebody has the bytes who had not before."""
        gc.collect()
        if sys.getrefcount(self.data) > self.references:
            raise RuleBroken(f"{when}, it still has the bytes of the payload")


def arrived(far_side: FarSide) -> set[int]:
    """The numbers of the pushes that the far side took."""
    return numbers_in(far_side.received())


async def arrivals(far_side: FarSide, numbers: set[int], within_s: float) -> set[int]:
    """Those of the pushes that are still missing when the time is over."""
    deadline_s = time.monotonic() + within_s
    while (missing := numbers - arrived(far_side)) and time.monotonic() < deadline_s:
        await asyncio.sleep(STEP_S)
    return missing


async def closed(subject: Subject, offer: Any, what: str = "close") -> None:
    """Close it as the host does: on the loop, for a forwarder awaited.

    Raises:
        RuleBroken: It raised, or took too long.
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
    """A new one, closed at the end, which is not what is looked at here."""
    offer = called("make", subject.make)
    try:
        yield offer
    finally:
        with contextlib.suppress(RuleBroken):
            await closed(subject, offer)


async def closes_unused(subject: Subject) -> None:
    """The rule for all that is made ready to be called: a forwarder has a start before."""
    subject.turn(FarSideState.UP)
    offer = called("make", subject.make)
    await closed(subject, offer, "close before the first call")
    await closed(subject, offer, "the second close")
