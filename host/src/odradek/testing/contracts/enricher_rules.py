"""The rules for an enricher. The host calls it on its loop, once per client instance and connection."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping
from typing import Any, Final

from odradek.plugin import UNKNOWN, Enricher, Later, RequestContext
from odradek.testing.contracts.observing import (
    STEP_S,
    Watch,
    beside_another,
    called,
    closes_unused,
    contents,
    located,
    opened,
    refuse_changes,
    shown,
    taken_by,
    within_budget,
)
from odradek.testing.contracts.rule import RuleBroken, rules
from odradek.testing.contracts.samples import LONG_TEXT, ODD_TEXT, Samples, connection_of, context_of
from odradek.testing.contracts.subject import BUDGET_MS, Capability, FarSideState, Kind, Subject

ROUND = 50
INSTANCE_ID = bytes(range(16))
ANSWER_S: Final = 2.0
NOTHING: Final = object()
"""Instead of labels that do not come."""
PRINCIPAL = "User:contract-kit"
SPOOFS = (
    "User:admin",
    "principal=User:admin",
    "principal=User:admin,contract_spoof=1;contract_spoof=2",
    "client_id",
    '","principal":"User:admin',
    "admin\nprincipal: User:admin",
)
"""Client ids and software names that a hostile client may send."""


async def labels_of(enricher: Enricher, context: RequestContext) -> Any:
    """Ask as the host does, and return what comes of it, which may be of any type.

    Raises:
        RuleBroken: There are no labels: an exception, or an answer that does not come.
    """
    if blocks(enricher):
        answer = await asyncio.to_thread(called, "labels", enricher.labels, INSTANCE_ID, context)
    else:
        answer = called("labels", enricher.labels, INSTANCE_ID, context)
    found = await outcome_of(answer, ANSWER_S)
    if found is NOTHING:
        raise RuleBroken(f"labels returned a Later that had no outcome within {ANSWER_S:g} s")
    if isinstance(found, BaseException):
        raise RuleBroken(f"the outcome of a Later is {located(found)}") from found
    return found


async def outcome_of(answer: Any, patience_s: float) -> Any:
    """Labels, the error of a `Later`, or `NOTHING` if it has no outcome in time."""
    if not isinstance(answer, Later):
        return answer
    outcomes: list[Any] = []
    answer.when_done(outcomes.append)
    if answer.awaitable is not None:
        running = asyncio.ensure_future(answer.awaitable)
        await asyncio.wait([running], timeout=patience_s)
        if not running.cancel():
            outcomes.append(running.exception() or running.result())
    deadline_s = time.monotonic() + patience_s
    while answer.awaitable is None and not outcomes and time.monotonic() < deadline_s:
        await asyncio.sleep(STEP_S)
    return outcomes[0] if outcomes else NOTHING


def blocks(enricher: Enricher) -> bool:
    """Whether the host calls it on threads of its own."""
    return bool(getattr(enricher, "blocks", False))


async def returns_in_time(subject: Subject) -> None:
    contexts = [context_of(f"orders-{number}") for number in range(ROUND)]
    async with opened(subject) as enricher:
        if blocks(enricher):
            return

        def call(number: int) -> None:
            close_unused(enricher.labels(number.to_bytes(16), contexts[number]))

        await within_budget("labels", call, lambda: range(ROUND), subject.budget_ms or BUDGET_MS)


def close_unused(answer: object) -> None:
    """Close an answer that nobody waits for."""
    if isinstance(answer, Later) and inspect.iscoroutine(answer.awaitable):
        answer.awaitable.close()


async def outlives_far_side(subject: Subject) -> None:
    context = context_of()
    async with opened(subject) as other:
        expected = await labels_of(other, context)
    async with opened(subject) as enricher:
        subject.turn(FarSideState.DOWN)
        if await tried(enricher, context, subject.patience_s) is NOTHING:
            raise RuleBroken(f"with its far side down, labels had no outcome in {subject.patience_s:g} s")
        subject.turn(FarSideState.UP)
        await refuse_other_labels(enricher, context, expected, subject.patience_s)


async def waits_for_no_far_side(subject: Subject) -> None:
    context, waiting = context_of(), list[asyncio.Future[Any]]()
    async with opened(subject) as other:
        expected = await labels_of(other, context)
    async with opened(subject) as enricher:
        subject.turn(FarSideState.SLOW)
        if blocks(enricher):
            waiting.append(asyncio.ensure_future(tried(enricher, context, subject.patience_s)))
            await asyncio.sleep(STEP_S)
        else:

            def call(_: int) -> None:
                answer = enricher.labels(INSTANCE_ID, context)
                waiting.append(asyncio.ensure_future(outcome_of(answer, subject.patience_s)))

            budget_ms = subject.budget_ms or BUDGET_MS
            await within_budget("with a slow far side, labels", call, lambda: range(3), budget_ms)
        subject.turn(FarSideState.UP)
        done, pending = await asyncio.wait(waiting, timeout=subject.patience_s)
        if pending or any(each.result() is NOTHING for each in done):
            raise RuleBroken("labels had no outcome after the far side was slow")
        await refuse_other_labels(enricher, context, expected, subject.patience_s)


async def tried(enricher: Enricher, context: RequestContext, patience_s: float) -> Any:
    """Labels, an error, or `NOTHING`: an enricher may fail while its far side does not answer."""
    try:
        if blocks(enricher):
            asking = asyncio.to_thread(enricher.labels, INSTANCE_ID, context)
            return await asyncio.wait_for(asking, patience_s)
        return await outcome_of(enricher.labels(INSTANCE_ID, context), patience_s)
    except TimeoutError:
        return NOTHING
    except Exception as error:  # noqa: BLE001  the host takes any
        return error


async def refuse_other_labels(
    enricher: Enricher, context: RequestContext, expected: object, patience_s: float
) -> None:
    """Check that an enricher has the right labels again now that its far side is up.

    Raises:
        RuleBroken: It has not got them in time.
    """
    deadline_s = time.monotonic() + patience_s
    while (found := await tried(enricher, context, patience_s)) != expected:
        if time.monotonic() >= deadline_s:
            raise RuleBroken(f"with its far side up again, labels are {shown(found)}, not {shown(expected)}")
        await asyncio.sleep(STEP_S)


async def changes_nothing(subject: Subject) -> None:
    record = Samples().push()
    before = contents(record)
    async with opened(subject) as enricher:
        await labels_of(enricher, record.context)
        refuse_changes(before, contents(record))


async def keeps_nothing(subject: Subject) -> None:
    records = Samples().pushes(ROUND)
    async with opened(subject) as enricher:
        # together: an enricher that asks another system answers late
        await asyncio.gather(*(labels_of(enricher, record.context) for record in records))
        watch = Watch(records)
        records.clear()
        deadline_s = time.monotonic() + subject.patience_s
        while watch.kept() and time.monotonic() < deadline_s:  # a thread lets go after it has answered
            await asyncio.sleep(STEP_S)
        watch.refuse_leftovers("after its calls")


async def sees_through_spoofed(subject: Subject) -> None:
    async with opened(subject) as enricher:
        honest = dict(await labels_of(enricher, context_of("orders", connection_of(PRINCIPAL))))
        for spoof in SPOOFS:
            liar = connection_of(PRINCIPAL, client_software_name=spoof, client_software_version=spoof)
            refuse_spoofed(honest, dict(await labels_of(enricher, context_of(spoof, liar))), spoof)


def refuse_spoofed(honest: Mapping[str, str], labels: Mapping[str, str], spoof: str) -> None:
    """Check that a client cannot add a label or change one that is derived from its principal.

    Raises:
        RuleBroken: It can.
    """
    added = sorted(labels.keys() - honest.keys())
    if added:
        raise RuleBroken(f"a client named {spoof!r} gets additional labels: {', '.join(added)}")
    known = [name for name, value in honest.items() if PRINCIPAL in str(value)]
    for name in known:
        if labels.get(name) != honest[name]:
            found = labels.get(name)
            raise RuleBroken(
                f"a client named {spoof!r} changes the label {name} from {honest[name]!r} to {found!r}"
            )


async def answers_as_agreed(subject: Subject) -> None:
    async with opened(subject) as enricher:
        for client_id in ("orders", None):
            labels = await labels_of(enricher, context_of(client_id))
            if not isinstance(labels, Mapping):
                raise RuleBroken(f"labels returned {type(labels).__name__}, expected a mapping of strings")
            for name, value in labels.items():
                if not (isinstance(name, str) and name and isinstance(value, str)):
                    raise RuleBroken(
                        f"labels returned {shown(name)}: {shown(value)}, expected non-empty name and string"
                    )


UNKNOWN_SOFTWARE: Final = connection_of(client_software_name=UNKNOWN, client_software_version=UNKNOWN)
ENRICHER_RULES: Final = rules(
    Kind.ENRICHER,
    {
        "returns-in-time": (returns_in_time,),
        "changes-nothing": (changes_nothing,),
        "keeps-nothing": (keeps_nothing,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (beside_another(labels_of, context_of()),),
        "empty": (taken_by(labels_of, context_of(None, UNKNOWN_SOFTWARE), context_of("", UNKNOWN_SOFTWARE)),),
        "huge": (taken_by(labels_of, context_of(LONG_TEXT)),),
        "undecodable": (taken_by(labels_of, context_of(ODD_TEXT)),),
        "spoofed": (sees_through_spoofed,),
        "far-side-down": (outlives_far_side, Capability.FAR_SIDE),
        "far-side-slow": (waits_for_no_far_side, Capability.FAR_SIDE),
        "answers-as-agreed": (answers_as_agreed,),
    },
)
