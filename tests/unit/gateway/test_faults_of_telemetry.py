"""Whatever fails in telemetry, the other requests of the same pair and of others pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.gateway.gateway_labels import GatewayLabels
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.metrics.cluster_name import ClusterName
from odradek.plugin.context import RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.broker import make_broker
from support.gateway_pair import FETCH, Through, answer, bare, request

METRICS = bytes.fromhex("0a00")
INSTANCE = bytes(15) + b"\7"
DATA, DATA_ANSWER = bare(FETCH, 4, 1), answer(1, b"records")
LATER, LATER_ANSWER = bare(FETCH, 4, 3), answer(3, b"more records")


class Failing:
    """A receiver, or an enricher, that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def export_metrics(self, context: RequestContext, payload: object) -> None:
        raise self.error

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        raise self.error


class Slow:
    """A receiver that blocks the loop for ten seconds at each push."""

    def __init__(self, clock: MockClock) -> None:
        self.clock, self.calls = clock, 0

    def export_metrics(self, context: RequestContext, payload: object) -> None:
        self.calls += 1
        self.clock.advance(10_000)


class Sink:
    """A spool: what it says of each push."""

    def __init__(self, kept: bool | Deferred[bool] | Exception) -> None:
        self.kept = kept

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        if isinstance(self.kept, Exception):
            raise self.kept
        return self.kept


class Gateway:
    """A broker's telemetry before pairs."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.broker: Broker = make_broker(clock=self.clock)
        self.broker.telemetry.update_subscription("all", {"metrics": "*", "interval.ms": "100"})
        self.broker.telemetry.enrichers.register("gateway", GatewayLabels("edge", ClusterName()))
        self.answers = TelemetryAnswers(Dispatcher(self.broker, Routes()), self.broker.telemetry)

    def pair(self) -> Through:
        return Through(answers=self.answers)

    def subscription_id(self) -> int:
        """The id that a push of the instance has to name."""
        written: list[bytes] = []
        asked = request(GetTelemetrySubscriptionsRequest(client_instance_id=INSTANCE), 0, 9)
        pair = self.pair()
        self.answers.answer(asked[4:], pair.identity, written.append)
        self.clock.advance(100)
        return self.broker.telemetry.instances()[0].subscription_id

    def push(self) -> bytes:
        """The frame of a push."""
        pushed = PushTelemetryRequest(
            client_instance_id=INSTANCE, subscription_id=self.subscription_id(), metrics=METRICS
        )
        return request(pushed, 0, 2)


def raising_receiver(gateway: Gateway) -> None:
    gateway.broker.telemetry.plugin.add_receiver("broken", Failing(RuntimeError("broken")))


def exiting_receiver(gateway: Gateway) -> None:
    gateway.broker.telemetry.plugin.add_receiver("broken", Failing(SystemExit(1)))


def raising_enricher(gateway: Gateway) -> None:
    gateway.broker.telemetry.enrichers.register("broken", Failing(RuntimeError("broken")))


def slow_receiver(gateway: Gateway) -> None:
    gateway.broker.telemetry.plugin.add_receiver("slow", Slow(gateway.clock))


def unwritable_spool(gateway: Gateway) -> None:
    gateway.broker.sink = Sink(kept=False)


def raising_spool(gateway: Gateway) -> None:
    gateway.broker.sink = Sink(OSError(28, "No space left on device"))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (raising_receiver, ErrorCode.NONE),
        (exiting_receiver, ErrorCode.NONE),
        (raising_enricher, ErrorCode.NONE),
        (slow_receiver, ErrorCode.NONE),
        (unwritable_spool, ErrorCode.THROTTLING_QUOTA_EXCEEDED),
        (raising_spool, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_fault_leaves_the_other_requests_of_the_pair(
    fault: Callable[[Gateway], Any], code: ErrorCode
) -> None:
    gateway = Gateway()
    fault(gateway)
    push, through = gateway.push(), gateway.pair()

    through.send(DATA, push, LATER)
    through.reply(DATA_ANSWER, LATER_ANSWER)

    assert through.cause is None
    assert through.sent == DATA + LATER
    assert through.received.startswith(DATA_ANSWER)
    assert through.received.endswith(LATER_ANSWER)
    told = through.received[len(DATA_ANSWER) : -len(LATER_ANSWER)]
    assert int.from_bytes(told[4:8]) == 2
    assert int.from_bytes(told[13:15], signed=True) == code


def test_a_spool_that_hangs_holds_back_only_the_pair_that_pushed() -> None:
    gateway = Gateway()
    hanging = Deferred[bool]()
    gateway.broker.sink = Sink(hanging)
    push, pushing, other = gateway.push(), gateway.pair(), gateway.pair()

    pushing.send(push, LATER)
    other.send(DATA)
    other.reply(DATA_ANSWER)

    # requests go on to the broker; their answers keep their order
    assert (pushing.sent, pushing.received) == (LATER, b"")
    assert other.received == DATA_ANSWER
    hanging.complete(True)
    pushing.reply(LATER_ANSWER)
    assert pushing.received.endswith(LATER_ANSWER)


def test_a_bug_in_telemetry_closes_the_pair_that_asked_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway()
    push, asking, other = gateway.push(), gateway.pair(), gateway.pair()

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(gateway.answers.dispatcher, "answer", fail)
    asking.send(push)
    other.send(DATA)
    other.reply(DATA_ANSWER)

    assert asking.cause is not None
    assert (other.cause, other.received) == (None, DATA_ANSWER)


def test_a_receiver_that_keeps_blocking_is_moved_off_the_loop() -> None:
    gateway = Gateway()
    moved: list[object] = []

    def displace(export: Any, _stats: object) -> Any:
        moved.append(export)
        return lambda *_: None

    slow = Slow(gateway.clock)
    gateway.broker.telemetry.plugin = ClientMetricsReceiverPlugin(
        gateway.clock, slow_ms=5, slow_limit=200, displace=displace
    )
    gateway.broker.telemetry.plugin.add_receiver("slow", slow)
    through = gateway.pair()
    push = gateway.push()

    for _ in range(3):
        gateway.clock.advance(100)
        through.send(push)

    assert (slow.calls, len(moved)) == (1, 1)
    assert through.cause is None
