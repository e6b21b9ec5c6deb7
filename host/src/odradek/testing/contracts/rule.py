"""Rules and their checks. This module does not need pytest."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from threading import Thread
from typing import Any

from odradek.testing.contracts.explanations import EXPLANATIONS, NAMES, THREADS_TITLE
from odradek.testing.contracts.subject import Capability, Kind, Subject
from odradek.testing.contracts.thread_deaths import ThreadDeaths


class RuleBroken(AssertionError):
    """The plugin breaks a rule. The message says what it did."""


class Hangs(RuleBroken):
    """A call of the plugin did not return, and is still running."""


class ThreadDied(RuleBroken):
    """A thread of the plugin ended with an exception."""


class CannotTell(Exception):
    """The plugin or the subject lacks a capability that the rule needs."""


Check = Callable[[Subject], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for one kind of plugin."""

    number: int
    name: str
    kind: Kind
    check: Check
    needs: tuple[Capability, ...] = ()

    def __str__(self) -> str:
        return f"R{self.number}-{self.name}"

    @property
    def explanation(self) -> str:
        """The demand of the rule, what breaks it, and what to do instead, in two lines."""
        return EXPLANATIONS[str(self)]


def rules(kind: Kind, checks: Mapping[str, tuple[Check, *tuple[Capability, ...]]]) -> tuple[Rule, ...]:
    """Create the rules for a kind of plugin from their checks and required capabilities, by name."""
    return tuple(
        Rule(NAMES.index(name) + 1, name, kind, check, tuple(needs))
        for name, (check, *needs) in checks.items()
    )


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one rule."""

    rule: Rule
    outcome: Outcome
    why: str = ""
    """The reason if the rule failed or was skipped."""
    error: BaseException | None = None

    @property
    def explanation(self) -> tuple[str, str]:
        """A title, and what the plugin must do: the rule, or what concerns all rules if a thread died."""
        if isinstance(self.error, ThreadDied):
            return THREADS_TITLE, EXPLANATIONS[THREADS_TITLE]
        return str(self.rule), self.rule.explanation


def verdicts(rules: Iterable[Rule], subject: Subject) -> Iterator[Verdict]:
    """Check the rules in order, and continue after a broken one."""
    return (verdict(rule, subject) for rule in rules)


def verdict(rule: Rule, subject: Subject) -> Verdict:
    """Check one rule in its own thread and event loop. It fails if a thread of the plugin dies meanwhile."""
    with ThreadDeaths() as deaths:
        raised = error_of(rule, subject)
        if not isinstance(raised, Hangs):
            deaths.settle()
    if raised is None and deaths.found:
        raised = ThreadDied(deaths.described())
    if isinstance(raised, CannotTell):
        return Verdict(rule, Outcome.SKIPPED, str(raised))
    return failed(rule, raised, deaths) if raised is not None else Verdict(rule, Outcome.PASSED)


def failed(rule: Rule, error: BaseException, deaths: ThreadDeaths) -> Verdict:
    """The verdict for an error; the reason names the type of an error other than `RuleBroken`."""
    why = str(error) if isinstance(error, RuleBroken) else f"{type(error).__name__}: {error}"
    died = deaths.described()
    return Verdict(rule, Outcome.FAILED, why if not died or died in why else f"{why}; {died}", error)


def error_of(rule: Rule, subject: Subject) -> BaseException | None:
    """The exception that the check raised; None if it passed. A check that hangs is left in its thread."""
    raised: list[BaseException] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def checked() -> None:
        loops.append(asyncio.get_running_loop())
        await whole(rule, subject)

    def run() -> None:
        try:
            asyncio.run(checked())
        except BaseException as error:  # noqa: BLE001  a plugin may raise anything, sys.exit() included
            raised.append(error)

    thread = Thread(target=run, name=f"contract-{rule}", daemon=True)
    thread.start()
    thread.join(subject.limit_s)
    if thread.is_alive():
        return Hangs(f"still running after {subject.limit_s:g} s: it hangs in {place(thread, loops)}")
    return raised[0] if raised else None


async def whole(rule: Rule, subject: Subject) -> None:
    """Check the required capabilities, then the rule itself.

    Raises:
        CannotTell: A required capability is missing.
    """
    reasons = [reason for capability in rule.needs if (reason := subject.lacks(capability))]
    if reasons:
        raise CannotTell(", ".join(reasons))
    await rule.check(subject)


def place(thread: Thread, loops: Iterable[asyncio.AbstractEventLoop]) -> str:
    """File, line and function where a thread runs, or where the tasks of its loop wait."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  its documented name
    if frame is None:
        return "an unknown place"
    last = traceback.extract_stack(frame)[-1]
    if last.name == "select":
        waiting = [innermost(task.get_coro()) for loop in loops for task in asyncio.all_tasks(loop)]
        if waiting:
            return ", ".join(sorted(waiting))
    return f"{last.filename}:{last.lineno} ({last.name})"


def innermost(coroutine: Any) -> str:
    """File, line and function where a coroutine is suspended."""
    while (inner := getattr(coroutine, "cr_await", None)) is not None and hasattr(inner, "cr_frame"):
        coroutine = inner
    frame, code = coroutine.cr_frame, coroutine.cr_code
    return f"{code.co_filename}:{frame.f_lineno if frame else code.co_firstlineno} ({code.co_name})"
