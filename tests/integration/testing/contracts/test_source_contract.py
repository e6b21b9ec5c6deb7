"""Each rule for sources is broken by a plugin that breaks no other; a good plugin follows all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from odradek.plugin import Intake, TelemetryRecord
from odradek.testing.contracts import (
    FarSideState,
    Kind,
    Outcome,
    Rule,
    SourceContract,
    Subject,
    rules_of,
    verdict,
)
from support.contracts import ClosedOnce

STEP_S = 0.01


@dataclass(eq=False)
class Shelf:
    """The place of origin: pushes in order, and the number of those that were taken away."""

    pushes: list[TelemetryRecord] = field(default_factory=list)
    done: int = 0
    state: FarSideState = FarSideState.UP

    def put(self, pushes: Sequence[TelemetryRecord]) -> None:
        self.pushes += pushes

    def turn(self, state: FarSideState) -> None:
        self.state = state

    def received(self) -> list[bytes]:
        return []

    def read(self) -> list[TelemetryRecord]:
        if self.state is not FarSideState.UP:
            raise ConnectionError("down")
        return self.pushes[self.done :]


class Good:
    """Stores what is on the shelf, then takes it away."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    async def run(self, intake: Intake) -> None:
        while True:
            await self.store(intake, self.shelf.read())
            await asyncio.sleep(STEP_S)

    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        left = records
        while left:
            left = (await intake.store(left)).left
            if left:
                await asyncio.sleep(STEP_S)
        self.shelf.done += len(records)

    def lag(self) -> int | None:
        return len(self.shelf.pushes) - self.shelf.done

    def close(self) -> None:
        return None


class Blocks(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        time.sleep(0.12)
        await super().store(intake, records)


class ClosesOnce(ClosedOnce, Good):
    pass


class Alone(Good):
    stopped: ClassVar = False

    async def run(self, intake: Intake) -> None:
        Alone.stopped = False
        try:
            while not Alone.stopped:
                await self.store(intake, self.shelf.read())
                await asyncio.sleep(STEP_S)
            await asyncio.Event().wait()
        finally:
            Alone.stopped = True


class StaysAtGarbage(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        for record in records:
            receipt = await intake.store([record])
            while receipt.refused or receipt.left:
                await asyncio.sleep(STEP_S)
                receipt = await intake.store([record])
            self.shelf.done += 1


class EndsWithItsOrigin(Good):
    ended = False

    async def run(self, intake: Intake) -> None:
        if self.ended:
            return
        try:
            await super().run(intake)
        except ConnectionError:
            self.ended = True


class IgnoresItsCancellation(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        try:
            await super().store(intake, records)
        except asyncio.CancelledError:
            await asyncio.sleep(1.5)
            raise


class TakesAwayFirst(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        self.shelf.done += len(records)
        left = records
        while left:
            left = (await intake.store(left)).left
            if left:
                await asyncio.sleep(STEP_S)


class ForgetsWhatIsLeft(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        if records:
            await intake.store(records)
        self.shelf.done += len(records)


class Turns(Good):
    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        left = list(records)
        while left:
            left = (await intake.store(left)).left
            left.reverse()
            if left:
                await asyncio.sleep(STEP_S)
        self.shelf.done += len(records)


class SaysMinusOne(Good):
    def lag(self) -> Any:
        return -1


BROKEN = {
    Blocks: "R1-returns-in-time",
    ClosesOnce: "R4-closes-unused",
    Alone: "R5-starts-twice",
    StaysAtGarbage: "R9-undecodable",
    EndsWithItsOrigin: "R12-far-side-down",
    IgnoresItsCancellation: "R13-far-side-slow",
    TakesAwayFirst: "R15-flushes",
    ForgetsWhatIsLeft: "R16-accounts",
    Turns: "R16-accounts",
    SaysMinusOne: "R17-answers-as-agreed",
}


def subject_of(kind: type[Good], patience_s: float = 0.4) -> Subject:
    shelf = Shelf()
    return Subject(make=lambda: kind(shelf), supply=shelf, far_side=shelf, patience_s=patience_s)


def broken_rules(kind: type[Good]) -> list[str]:
    """The rules that are broken in both of two runs, each with a shelf of its own."""

    def is_broken(rule: Rule) -> bool:
        return verdict(rule, subject_of(kind)).outcome is Outcome.FAILED

    return [str(rule) for rule in rules_of(Kind.SOURCE) if is_broken(rule) and is_broken(rule)]


class TestGoodSource(SourceContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Good, patience_s=8.0)  # it is done sooner, unless the machine is busy


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_source_breaks_exactly_its_rule(kind: type[Good]) -> None:
    assert broken_rules(kind) == [BROKEN[kind]]


def test_every_rule_has_a_plugin_that_breaks_it() -> None:
    assert {str(rule) for rule in rules_of(Kind.SOURCE)} == set(BROKEN.values())
