"""Each rule for forwarders is broken by a plugin that breaks no other; a good plugin follows all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import pytest

from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek.testing.contracts import (
    FarSideState,
    ForwarderContract,
    Kind,
    Outcome,
    Subject,
    rules_of,
    verdicts,
)
from support.contracts import broken_rules, distinct

STEP_S = 0.005


class Store:
    """A destination in memory."""

    def __init__(self) -> None:
        self.state = FarSideState.UP
        self.bodies: list[bytes] = []

    def turn(self, state: FarSideState) -> None:
        self.state = state

    def received(self) -> Iterable[bytes]:
        return self.bodies

    async def put(self, datas: Iterable[bytes]) -> None:
        while self.state is FarSideState.SLOW:
            await asyncio.sleep(STEP_S)
        if self.state is FarSideState.DOWN:
            raise ConnectionRefusedError
        if self.state is FarSideState.REFUSING:
            raise PermissionError
        self.bodies += [bytes(bytearray(data)) for data in datas]


class Good:
    """Puts the payloads of a batch into the store, one by one."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def start(self) -> None:
        return None

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> Any:
        await self.put([record.payload.data for record in batch])

    async def put(self, datas: Sequence[bytes]) -> None:
        try:
            await self.store.put(datas)
        except ConnectionRefusedError as error:
            raise Retry("down") from error
        except PermissionError as error:
            raise Reject("refused") from error

    async def close(self) -> None:
        return None


class Blocks(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        time.sleep(0.05)
        await super().deliver(batch)


class Changes(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        await super().deliver(batch)
        for record in batch:
            record.payload.content_type = "text/plain"


class EatsTheBatch(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        await super().deliver(batch)
        assert isinstance(batch, list)
        batch.clear()


class Keeps(Good):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.kept: list[TelemetryRecord] = []

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        await super().deliver(batch)
        self.kept += batch


class ClosesStartedOnly(Good):
    session: object = None

    async def start(self) -> None:
        self.session = object()

    async def close(self) -> None:
        if self.session is None:
            raise RuntimeError("not started")


class ClosesOnce(Good):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed")
        self.closed = True


class StartsOnce(Good):
    started = False

    async def start(self) -> None:
        if self.started:
            raise RuntimeError("started")
        self.started = True


class Alone(Good):
    closed: ClassVar = False

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        Alone.closed = False

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if Alone.closed:
            raise RuntimeError("closed")
        await super().deliver(batch)

    async def close(self) -> None:
        Alone.closed = True


class WantsMetrics(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        assert batch[0].payload.data[0]
        await super().deliver(batch)


class LosesTheLast(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        await super().deliver([record for record in batch if not record.payload.terminating])


class WantsLittle(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if sum(len(record.payload.data) for record in batch) > 1 << 20:
            raise ValueError("too much")
        await super().deliver(batch)


class FailsOnGarbage(Good):
    dead = False

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        self.dead = self.dead or (len(batch) == 1 and batch[0].payload.data.startswith(b"\xff"))
        if self.dead:
            raise Reject("dead")
        await super().deliver(batch)


class OneAtATime(Good):
    busy = False

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            await asyncio.sleep(STEP_S)
            await super().deliver(batch)
        finally:
            self.busy = False


class BelievesAdmins(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        claims = {b"User:admin" in record.payload.data: record for record in batch}
        await super().deliver(batch if True not in claims else [claims[True]])


class SwallowsTheRefusedConnection(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        if self.store.state is not FarSideState.DOWN:
            await super().put(datas)


class GivesUpWhenDown(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        if self.store.state is FarSideState.DOWN:
            raise Reject("down")
        await super().put(datas)


class IgnoresCancellation(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        while self.store.state is FarSideState.SLOW:
            try:
                await asyncio.sleep(STEP_S)
            except asyncio.CancelledError:
                continue
        await super().put(datas)


class TakesRefusalForSuccess(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        if self.store.state is not FarSideState.REFUSING:
            await super().put(datas)


class RaisesAnyException(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        if self.store.state is FarSideState.REFUSING:
            raise PermissionError("no")
        await super().put(datas)


class HoldsBack(Good):
    """Sends part of a batch a moment later, in the background."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.later: list[asyncio.Task[None]] = []

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        await self.put([record.payload.data for record in batch[:30]])
        if batch[30:]:
            rest = [record.payload.data for record in batch[30:]]
            self.later.append(asyncio.create_task(self.put_later(rest)))

    async def put_later(self, datas: Sequence[bytes]) -> None:
        await asyncio.sleep(0.05)
        await self.put(datas)

    async def close(self) -> None:
        while self.later:
            self.later.pop().cancel()


class ClosesWhenItLikes(Good):
    async def close(self) -> None:
        for _ in range(100):
            if self.store.state is not FarSideState.SLOW:
                return
            await asyncio.sleep(STEP_S)


class ClaimsAll(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        try:
            await super().deliver(batch)
        except Reject as error:
            raise Reject(str(error), delivered=batch) from error


class NamesStrangers(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        try:
            await super().deliver(batch)
        except Reject as error:
            copies = [TelemetryRecord(record.context, 1, record.payload) for record in batch]
            raise Reject(str(error), copies) from error


class Answers(Good):
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> bool:
        await super().deliver(batch)
        return True


class JoinsNames(Good):
    async def put(self, datas: Sequence[bytes]) -> None:
        await super().put([data for data in datas if distinct(data)])


BROKEN = {
    Blocks: "R1-returns-in-time",
    Changes: "R2-changes-nothing",
    EatsTheBatch: "R2-changes-nothing",
    Keeps: "R3-keeps-nothing",
    ClosesStartedOnly: "R4-closes-unused",
    ClosesOnce: "R4-closes-unused",
    StartsOnce: "R5-starts-twice",
    Alone: "R5-starts-twice",
    WantsMetrics: "R6-empty",
    LosesTheLast: "R7-terminating",
    WantsLittle: "R8-huge",
    FailsOnGarbage: "R9-undecodable",
    OneAtATime: "R10-concurrent",
    BelievesAdmins: "R11-spoofed",
    SwallowsTheRefusedConnection: "R12-far-side-down",
    GivesUpWhenDown: "R12-far-side-down",
    IgnoresCancellation: "R13-far-side-slow",
    TakesRefusalForSuccess: "R14-far-side-refusing",
    RaisesAnyException: "R14-far-side-refusing",
    HoldsBack: "R15-flushes",
    ClosesWhenItLikes: "R15-flushes",
    ClaimsAll: "R16-accounts",
    NamesStrangers: "R16-accounts",
    Answers: "R17-answers-as-agreed",
    JoinsNames: "R18-same-names",
}


def subject_of(kind: type[Good], patience: float = 1.0) -> Subject:
    """A plugin that is good has more patience: it is done sooner, unless the machine is busy."""
    store = Store()
    return Subject(
        make=lambda: kind(store),
        far_side=store,
        declares=frozenset({"concurrent"}),
        budget_ms=30,
        close_s=patience * 0.25,
        patience_s=patience * 0.3,
        limit_s=patience * 10,
    )


def failures(kind: type[Good]) -> list[str]:
    """The rules that the plugin breaks."""
    return broken_rules(Kind.FORWARDER, lambda: subject_of(kind))


class TestGoodForwarder(ForwarderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Good, patience=20)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_forwarder_breaks_exactly_its_rule(kind: type[Good]) -> None:
    assert failures(kind) == [BROKEN[kind]]


def test_every_rule_has_a_plugin_that_breaks_it() -> None:
    assert {str(rule) for rule in rules_of(Kind.FORWARDER)} == set(BROKEN.values())


def test_without_a_destination_it_may_ask_to_retry() -> None:
    store = Store()
    store.turn(FarSideState.DOWN)

    found = list(verdicts(rules_of(Kind.FORWARDER), Subject(make=lambda: Good(store))))

    assert [verdict.why for verdict in found if verdict.outcome is Outcome.FAILED] == []
    assert [verdict.rule.number for verdict in found if verdict.outcome is Outcome.SKIPPED] == [
        10, 12, 13, 14, 15, 16,
    ]  # fmt: skip
