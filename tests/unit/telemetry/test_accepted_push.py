"""Pushes that are stored before they are answered, and the accounting of all pushes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from conformance.telemetry_broker import DATA, TelemetryBroker
from odradek.broker.handlers.push_telemetry import Answer
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.record_parts import partition_of, record_parts
from odradek.topic import decode_record, encode_headers, record_key
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.record import Record, append_record, parse_records


@dataclass
class Sink:
    """Keeps, refuses or waits."""

    answer: bool | None = None
    """None to wait."""
    pushes: list[AcceptedPush] = field(default_factory=list)
    waiting: list[Deferred[bool]] = field(default_factory=list)

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        self.pushes.append(push)
        if self.answer is not None:
            return self.answer
        self.waiting.append(Deferred())
        return self.waiting[-1]


@dataclass
class Receiver:
    seen: list[ClientTelemetryPayload] = field(default_factory=list)

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.seen.append(payload)


@dataclass
class Kept:
    """A manager with a sink and one receiver."""

    broker: TelemetryBroker
    sink: Sink = field(default_factory=Sink)
    receiver: Receiver = field(default_factory=Receiver)

    def __post_init__(self) -> None:
        self.broker.sink = self.sink
        self.broker.manager.plugin.add_receiver("receiver", self.receiver)
        self.broker.update("all", {"metrics": "*", "interval.ms": "100"})

    def push(
        self, told: GetTelemetrySubscriptionsResponse, metrics: bytes = DATA, terminating: bool = False
    ) -> Answer:
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            terminating=terminating,
            metrics=metrics,
        )
        answer = self.broker.send(request)
        assert self.broker.manager.accounts.balanced
        return answer

    def settled(self, push: Answer, kept: bool) -> ErrorCode:
        """The error code that a waiting push is answered with."""
        self.sink.waiting.pop().complete(kept)
        assert self.broker.manager.accounts.balanced
        assert isinstance(push, Deferred)
        return ErrorCode(push.outcome.error_code)


@pytest.fixture
def kept() -> Kept:
    return Kept(TelemetryBroker())


def test_receivers_get_a_push_after_it_is_stored(kept: Kept) -> None:
    push = kept.push(kept.broker.get())
    seen_before = list(kept.receiver.seen)

    code = kept.settled(push, True)

    assert seen_before == []
    assert code is ErrorCode.NONE
    assert [payload.data for payload in kept.receiver.seen] == [DATA]
    assert kept.broker.manager.accounts.appended == 1


def test_a_push_that_cannot_be_stored_is_throttled_and_no_receiver_gets_it(kept: Kept) -> None:
    told = kept.broker.get()

    code = kept.settled(kept.push(told), False)

    assert code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert kept.receiver.seen == []
    assert kept.broker.known(told).last_known_error is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert kept.broker.manager.accounts.rejected == {ErrorCode.THROTTLING_QUOTA_EXCEEDED: 1}


@pytest.mark.parametrize(
    ("taken", "code"), [(True, ErrorCode.NONE), (False, ErrorCode.THROTTLING_QUOTA_EXCEEDED)]
)
def test_a_sink_may_decide_at_once(kept: Kept, taken: bool, code: ErrorCode) -> None:
    kept.sink.answer = taken

    answer = kept.push(kept.broker.get())

    assert isinstance(answer, PushTelemetryResponse)
    assert answer.error_code == code
    assert len(kept.receiver.seen) == taken


def test_an_empty_push_is_stored_and_receivers_are_not_called(kept: Kept) -> None:
    push = kept.push(kept.broker.get(), b"")

    code = kept.settled(push, True)

    assert code is ErrorCode.NONE
    assert kept.sink.pushes[0].payload.data == b""
    assert kept.receiver.seen == []
    assert (kept.broker.manager.accounts.empty, kept.broker.manager.accounts.appended) == (1, 0)


def test_a_terminating_push_is_stored_as_terminating(kept: Kept) -> None:
    kept.push(kept.broker.get(), b"", terminating=True)

    assert kept.sink.pushes[0].payload.terminating
    assert kept.sink.pushes[0].record().payload.terminating


def test_throttled_pushes_do_not_reach_the_sink(kept: Kept) -> None:
    told = kept.broker.get()
    kept.push(told)

    kept.push(told)

    assert len(kept.sink.pushes) == 1
    assert kept.broker.manager.accounts.rejected == {ErrorCode.THROTTLING_QUOTA_EXCEEDED: 1}


def test_an_exception_in_the_sink_is_the_response(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    push = kept.push(kept.broker.get())
    error = RuntimeError("bug")

    def broken(_push: AcceptedPush) -> ErrorCode:
        raise error

    monkeypatch.setattr(kept.broker.manager, "export", broken)
    kept.sink.waiting.pop().complete(True)

    assert isinstance(push, Deferred)
    assert push.outcome is error


@pytest.mark.parametrize("terminating", [False, True])
def test_a_record_has_the_public_format(kept: Kept, terminating: bool) -> None:
    kept.push(kept.broker.get(), DATA, terminating)
    push = kept.sink.pushes[0]
    body = b"".join((b"\x00\x00\x00", *record_parts(push.record())))
    expected: list[bytes] = []
    record = push.record()
    key = record_key(push.payload.client_instance_id)

    append_record(expected, Record(key, DATA, 0, tuple(encode_headers(record))), 0, 0)

    assert b"".join(expected).endswith(body)
    read = next(iter(parse_records(b"".join(expected), 1, 0, 0)))
    assert decode_record(read.key, read.value, read.headers).payload.terminating is terminating


def test_the_headers_name_the_connection_of_the_push(kept: Kept) -> None:
    told = kept.broker.get()
    kept.push(told)
    kept.broker.clock.advance(100)
    kept.push(told)

    first, second = (record_parts(push.record())[-1] for push in kept.sink.pushes)

    connection = kept.sink.pushes[1].context.connection.connection_id.encode()
    assert connection in second
    assert connection not in first


def test_an_instance_always_has_the_same_partition() -> None:
    ids = [bytes([number]) * 16 for number in range(200)]

    partitions = [partition_of(instance_id, 4) for instance_id in ids]

    assert partitions == [partition_of(instance_id, 4) for instance_id in ids]
    assert set(partitions) == {0, 1, 2, 3}
