"""Each rule for receivers is broken by a plugin that breaks no other; a good plugin follows all."""

from __future__ import annotations

import time
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any, ClassVar

import pytest

from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.testing.contracts import (
    Accounts,
    ExporterContract,
    FarSideState,
    Kind,
    ReceiverContract,
    Subject,
    rules_of,
)
from support.contracts import broken_rules, distinct

FLUSH_S = 0.3


class Wire:
    """A destination in memory. `send` is called by the plugin's thread."""

    def __init__(self) -> None:
        self.state = FarSideState.UP
        self.changed = Condition()
        self.bodies: list[bytes] = []

    def turn(self, state: FarSideState) -> None:
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def received(self) -> Iterable[bytes]:
        return list(self.bodies)

    def send(self, data: bytes) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.state is not FarSideState.SLOW)
            if self.state is FarSideState.DOWN:
                raise ConnectionRefusedError
            if self.state is FarSideState.REFUSING:
                raise PermissionError
            self.bodies.append(bytes(bytearray(data)))


class Good:
    """A receiver with a queue, and a thread that sends."""

    delay_s = 0.0

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.queue: SimpleQueue[bytes | None] = SimpleQueue()
        self.lock = Lock()
        self.taken = self.delivered = self.dropped = 0
        self.thread = Thread(target=self.run, daemon=True)
        self.thread.start()

    def client_receiver(self) -> Good:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> Any:
        with self.lock:
            self.taken += 1
        self.queue.put(payload.data)

    def run(self) -> None:
        while (data := self.queue.get()) is not None:
            time.sleep(self.delay_s)
            try:
                self.wire.send(data)
            except OSError as error:
                self.dropped += 1
                if self.ends_after(error):
                    return
            else:
                self.delivered += 1

    def ends_after(self, error: OSError) -> bool:
        return False

    def close(self) -> None:
        self.queue.put(None)
        self.thread.join(FLUSH_S)
        with self.lock:
            self.dropped = self.taken - self.delivered

    def accounts(self) -> Accounts:
        with self.lock:
            waiting = self.taken - self.delivered - self.dropped
            return Accounts(delivered=self.delivered, dropped=self.dropped, waiting=waiting)


class Blocks(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        time.sleep(0.008)
        super().export_metrics(context, payload)


class Changes(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        super().export_metrics(context, payload)
        context.client_id = "mine"


class Keeps(Good):
    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.kept: list[ClientTelemetryPayload] = []

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        super().export_metrics(context, payload)
        self.kept.append(payload)


class KeepsBytes(Good):
    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.kept: list[bytes] = []

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        super().export_metrics(context, payload)
        self.kept.append(payload.data)


class ClosesUsedOnly(Good):
    last_client: str | None

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        super().export_metrics(context, payload)
        self.last_client = context.client_id

    def close(self) -> None:
        super().close()
        del self.last_client


class Alone(Good):
    closed: ClassVar = False

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        Alone.closed = False

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if self.closed:
            raise RuntimeError("closed")
        super().export_metrics(context, payload)

    def close(self) -> None:
        super().close()
        Alone.closed = True


class WantsBytes(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        assert payload.data[0]
        super().export_metrics(context, payload)


class LosesTheLast(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if not payload.terminating:
            super().export_metrics(context, payload)


class WantsLittle(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if len(payload.data) > 1 << 20:
            raise ValueError("too much")
        super().export_metrics(context, payload)


class FailsOnGarbage(Good):
    dead = False

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.dead = self.dead or payload.data.startswith(b"\xff")
        if self.dead:
            self.taken += 1
            self.dropped += 1
            return
        super().export_metrics(context, payload)


class OneAtATime(Good):
    busy = False

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        time.sleep(0.0005)
        super().export_metrics(context, payload)
        self.busy = False


class BelievesLabels(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if b"User:admin" not in payload.data or context.connection.principal == "User:admin":
            super().export_metrics(context, payload)


class GivesUpWhenDown(Good):
    def ends_after(self, error: OSError) -> bool:
        return isinstance(error, ConnectionRefusedError)


class WaitsWhenSlow(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if self.wire.state is FarSideState.SLOW:
            time.sleep(0.02)
        super().export_metrics(context, payload)


class GivesUpWhenRefused(Good):
    def ends_after(self, error: OSError) -> bool:
        return isinstance(error, PermissionError)


class ForgetsToFlush(Good):
    delay_s = 0.005

    def close(self) -> None:
        while True:
            try:
                self.queue.get_nowait()
            except Empty:
                break
        super().close()


class FlushesForever(Good):
    def close(self) -> None:
        self.queue.put(None)
        self.thread.join(3 * FLUSH_S)
        super().close()


class MiscountsGarbage(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if not payload.data.startswith(b"\xff"):
            super().export_metrics(context, payload)


class Answers(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> bool:
        super().export_metrics(context, payload)
        return True


class JoinsNames(Good):
    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        if distinct(payload.data):
            super().export_metrics(context, payload)


BROKEN = {
    Blocks: "R1-returns-in-time",
    Changes: "R2-changes-nothing",
    Keeps: "R3-keeps-nothing",
    KeepsBytes: "R3-keeps-nothing",
    ClosesUsedOnly: "R4-closes-unused",
    Alone: "R5-starts-twice",
    WantsBytes: "R6-empty",
    LosesTheLast: "R7-terminating",
    WantsLittle: "R8-huge",
    FailsOnGarbage: "R9-undecodable",
    OneAtATime: "R10-concurrent",
    BelievesLabels: "R11-spoofed",
    GivesUpWhenDown: "R12-far-side-down",
    WaitsWhenSlow: "R13-far-side-slow",
    GivesUpWhenRefused: "R14-far-side-refusing",
    ForgetsToFlush: "R15-flushes",
    FlushesForever: "R15-flushes",
    MiscountsGarbage: "R16-accounts",
    Answers: "R17-answers-as-agreed",
    JoinsNames: "R18-same-names",
}


class AsExporter:
    """Turns a receiver into an exporter."""

    def __init__(self, receiver: Good) -> None:
        self.receiver = receiver
        self.close = receiver.close
        self.accounts = receiver.accounts

    def client_telemetry_exporter(self) -> AsExporter:
        return self

    def export_metrics(self, context: Any, payload: ClientTelemetryPayload) -> Any:
        assert context.push_interval_ms > 0
        return self.receiver.export_metrics(context.request, payload)


def subject_of(kind: type[Good], exporter: bool = False, patience: float = 1.0) -> Subject:
    """A plugin that is good has more patience: it is done sooner, unless the machine is busy."""
    wire = Wire()
    return Subject(
        make=lambda: AsExporter(kind(wire)) if exporter else kind(wire),
        far_side=wire,
        accounts=lambda offer: offer.accounts(),
        declares=frozenset({"flush", "concurrent"}),
        close_s=patience * 2 * FLUSH_S,
        patience_s=patience * 0.4,
        limit_s=patience * 10,
    )


def failures(kind: type[Good], exporter: bool = False) -> list[str]:
    """The rules that the plugin breaks."""
    plugin = Kind.EXPORTER if exporter else Kind.RECEIVER
    return broken_rules(plugin, lambda: subject_of(kind, exporter))


class TestGoodReceiver(ReceiverContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Good, patience=20)


class TestGoodExporter(ExporterContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(Good, exporter=True, patience=20)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_receiver_breaks_exactly_its_rule(kind: type[Good]) -> None:
    assert failures(kind) == [BROKEN[kind]]


@pytest.mark.parametrize("kind", [Blocks, Changes, Answers], ids=lambda kind: kind.__name__)
def test_a_broken_exporter_breaks_the_same_rule(kind: type[Good]) -> None:
    assert failures(kind, exporter=True) == [BROKEN[kind]]


def test_every_rule_has_a_plugin_that_breaks_it() -> None:
    assert {str(rule) for rule in rules_of(Kind.RECEIVER)} == set(BROKEN.values())
