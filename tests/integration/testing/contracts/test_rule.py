"""A check of plugins that hang, end the program or are missing; and the messages of the classes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest

from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.testing.contracts import Kind, Outcome, Rule, Subject, Verdict, rules_of, verdict
from odradek.testing.contracts.classes import check
from odradek.testing.contracts.rule import Hangs
from odradek.testing.contracts.thread_deaths import ThreadDeaths

RULES = {rule.number: rule for rule in rules_of(Kind.RECEIVER)}


class Receiver:
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> Any:
        return None


class Hanging(Receiver):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        time.sleep(2)


class Leaving(Receiver):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        sys.exit(3)


class Promising(Receiver):
    async def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        return None


class Awaiting:
    async def start(self) -> None:
        return None

    async def deliver(self, batch: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        return None


class Sending(Receiver):
    """A receiver whose thread handles each push, until `handle` raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.pushes: SimpleQueue[bytes] = SimpleQueue()
        Thread(target=self.send, name="sender", daemon=True).start()

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushes.put(payload.data)

    def send(self) -> None:
        self.pushes.get()
        raise self.error


class StaysOut:
    def client_receiver(self) -> None:
        return None


def found(number: int, make: Any, **fields: Any) -> Verdict:
    return verdict(RULES[number], Subject(make=make, **fields))


def test_a_hanging_plugin_is_abandoned_and_its_line_named() -> None:
    hanging = found(7, Hanging, limit_s=0.1)

    assert isinstance(hanging.error, Hangs)
    assert hanging.why.startswith("still running after 0.1 s: it hangs in ")
    assert "test_rule.py" in hanging.why
    assert hanging.why.endswith("(export_metrics)")


def test_a_plugin_that_awaits_forever_is_named_by_its_own_line() -> None:
    rule = next(rule for rule in rules_of(Kind.FORWARDER) if rule.name == "terminating")

    hanging = verdict(rule, Subject(make=Awaiting, limit_s=0.2))

    assert isinstance(hanging.error, Hangs)
    assert "test_rule.py" in hanging.why
    assert hanging.why.endswith("(deliver)")


def test_a_plugin_that_hangs_while_created_is_abandoned_too() -> None:
    hanging = found(4, lambda: time.sleep(2), limit_s=0.1)

    assert isinstance(hanging.error, Hangs)


def test_a_plugin_that_ends_the_program_only_breaks_the_rule() -> None:
    leaving = found(7, Leaving)

    assert leaving.why.startswith(f"export_metrics raised SystemExit: 3 ({__file__}:")


def test_a_plugin_that_cannot_be_created_breaks_the_rule() -> None:
    broken = found(7, lambda: 1 / 0)

    assert broken.why.startswith(f"make raised ZeroDivisionError: division by zero ({__file__}:")


def test_a_plugin_that_offers_nothing_is_reported() -> None:
    broken = found(7, StaysOut)

    assert broken.why == "client_receiver returned None: the plugin is inactive with this configuration"


def test_a_coroutine_function_is_reported_as_never_awaited() -> None:
    broken = found(17, Promising)

    assert (
        broken.why == "export_metrics is a coroutine function: the host does not await it, so it never runs"
    )


def test_a_thread_that_dies_breaks_the_rule_and_is_named_with_its_line() -> None:
    broken = found(7, lambda: Sending(ValueError("not a push")))

    assert broken.outcome is Outcome.FAILED
    assert broken.why.startswith("the thread sender died: ValueError: not a push (")
    assert f"{__file__}:" in broken.why
    assert broken.why.endswith(" in send)")


def test_a_thread_that_dies_is_named_beside_what_it_broke() -> None:
    class Both(Sending):
        def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
            super().export_metrics(context, payload)
            raise KeyError("x")

    broken = found(7, lambda: Both(ValueError("not a push")))

    assert broken.why.startswith("export_metrics raised KeyError: 'x' (")
    assert "; the thread sender died: ValueError" in broken.why


def test_a_thread_that_exits_is_no_failure() -> None:
    assert found(7, lambda: Sending(SystemExit(0))).outcome is Outcome.PASSED


def test_a_thread_of_an_earlier_check_is_not_blamed_on_this_one() -> None:
    with ThreadDeaths() as outer:
        earlier = Sending(ValueError("mine"))

        class Later(Receiver):
            def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
                earlier.pushes.put(b"")

        blamed = found(7, Later)
        outer.settle()

    assert blamed.outcome is Outcome.PASSED
    assert [name for name, _ in outer.found] == ["sender"]


def test_a_thread_that_is_listed_but_has_not_begun_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadDeaths() as deaths:
        monkeypatch.setattr(threading, "enumerate", lambda: [Thread(target=print)])
        deaths.settle()

    assert not deaths.described()


def test_a_rule_with_missing_requirements_is_skipped_with_all_reasons() -> None:
    skipped = found(15, Receiver)

    assert skipped.outcome is Outcome.SKIPPED
    assert skipped.why == ("Subject.far_side is not set, it does not declare 'flush', it has no close method")


@pytest.mark.parametrize("kind", Kind)
def test_numbers_and_names_of_rules_are_the_same_for_all_kinds(kind: Kind) -> None:
    names = {rule.number: rule.name for each in Kind for rule in rules_of(each)}

    assert [names[rule.number] for rule in rules_of(kind)] == [rule.name for rule in rules_of(kind)]
    assert {rule.kind for rule in rules_of(kind)} == {kind}


def test_a_failing_test_names_the_rule_and_explains_it() -> None:
    with pytest.raises(pytest.fail.Exception) as failing:
        check(RULES[7], Subject(make=Leaving))

    line = Leaving.export_metrics.__code__.co_firstlineno + 1
    assert failing.value.pytrace is False
    assert str(failing.value) == (
        f"R7-terminating: export_metrics raised SystemExit: 3 ({__file__}:{line} in export_metrics)\n"
        "The terminating push of a client arrives like any other.\n"
        "Broken by: cleaning up before sending if `payload.terminating` is true.\n"
        f'  File "{__file__}", line {line}, in export_metrics\n'
        "    sys.exit(3)\n"
    )


def test_a_failing_test_without_an_exception_of_the_plugin_shows_no_frames() -> None:
    with pytest.raises(pytest.fail.Exception) as failing:
        check(RULES[17], Subject(make=Promising))

    assert "File" not in str(failing.value)


def test_a_skipped_test_has_a_reason() -> None:
    with pytest.raises(pytest.skip.Exception, match="R4-closes-unused: it has no close method"):
        check(RULES[4], Subject(make=Receiver))


def test_a_rule_can_be_checked_without_pytest() -> None:
    passing: list[Rule] = [rule for rule in RULES.values() if verdict(rule, Subject(make=Receiver)).why == ""]

    assert [rule.number for rule in passing] == [1, 2, 3, 5, 6, 7, 8, 9, 11, 17, 18]
