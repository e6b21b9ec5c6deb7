"""Enrichers that ask another system: good ones follow all rules, and each bad one breaks exactly its rule."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from odradek.plugin import Later, RequestContext
from odradek.testing.contracts import (
    EnricherContract,
    FarSideState,
    Kind,
    Outcome,
    Subject,
    rules_of,
    verdict,
)
from support.contracts import broken_rules


class Cmdb:
    """A system that knows the teams of principals."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.state = FarSideState.UP

    def turn(self, state: FarSideState) -> None:
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def received(self) -> Iterable[bytes]:
        return ()

    def team(self, principal: str, timeout_s: float = 5) -> dict[str, str]:
        with self.changed:
            self.changed.wait_for(lambda: self.state is not FarSideState.SLOW, timeout_s)
            if self.state is FarSideState.DOWN:
                raise ConnectionRefusedError("the CMDB is down")
        return {"team": f"team of {principal}"}


class Blocking:
    """Says that it blocks."""

    blocks = True

    def __init__(self, cmdb: Cmdb) -> None:
        self.cmdb = cmdb

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        return self.cmdb.team(context.connection.principal)

    def close(self) -> None:
        return None


class Awaiting(Blocking):
    blocks = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        return Later(asyncio.to_thread(self.cmdb.team, context.connection.principal))


class Calling(Blocking):
    blocks = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        later = Later()
        arguments = later, context.connection.principal
        threading.Thread(target=self.ask, args=arguments, daemon=True).start()
        return later

    def ask(self, later: Later, principal: str) -> None:
        try:
            later.set(self.cmdb.team(principal))
        except OSError as error:
            self.failed(later, error)

    def failed(self, later: Later, error: OSError) -> None:
        later.fail(error)


class BlocksUnsaid(Blocking):
    """With a fast system it is as fast as others."""

    blocks = False

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        return self.cmdb.team(context.connection.principal, timeout_s=0.02)


class SaysNothing(Calling):
    def failed(self, later: Later, error: OSError) -> None:
        return None


class KeepsFailures(Awaiting):
    def __init__(self, cmdb: Cmdb) -> None:
        super().__init__(cmdb)
        self.known: dict[str, Mapping[str, str]] = {}

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Any:
        principal = context.connection.principal
        return self.known.get(principal) or Later(self.ask(principal))

    async def ask(self, principal: str) -> Mapping[str, str]:
        try:
            self.known[principal] = await asyncio.to_thread(self.cmdb.team, principal)
        except OSError:
            self.known[principal] = {"team": "unknown"}
        return self.known[principal]


BROKEN = {
    KeepsFailures: "R12-far-side-down",
    SaysNothing: "R12-far-side-down",
    BlocksUnsaid: "R13-far-side-slow",
}


def subject_of(kind: Callable[[Cmdb], Blocking]) -> Subject:
    cmdb = Cmdb()
    return Subject(make=lambda: kind(cmdb), far_side=cmdb, patience_s=0.3)


class TestBlocking(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Blocking)


class TestAwaiting(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Awaiting)


class TestCalling(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Calling)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_enricher_breaks_exactly_its_rule(kind: type[Blocking]) -> None:
    assert broken_rules(Kind.ENRICHER, lambda: subject_of(kind)) == [BROKEN[kind]]


def test_every_rule_about_a_far_side_has_a_plugin_that_breaks_it() -> None:
    rules = {str(rule) for rule in rules_of(Kind.ENRICHER) if "far-side" in rule.name}

    assert rules == set(BROKEN.values())


class InPairs:
    """Answers when another call has come, too."""

    blocks = True
    both = threading.Barrier(2, timeout=5)

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        self.both.wait()
        return {}


def test_an_enricher_that_blocks_is_asked_by_many_threads_what_it_keeps() -> None:
    """One after the other, the questions would take longer than a rule may."""
    (rule,) = [rule for rule in rules_of(Kind.ENRICHER) if rule.name == "keeps-nothing"]

    found = verdict(rule, Subject(make=InPairs))

    assert found.outcome is Outcome.PASSED
