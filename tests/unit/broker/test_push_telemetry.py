from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.telemetry.payload import PayloadWork
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import encode
from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.types import NIL_UUID
from support.broker import BrokerClient, make_broker

INLINE_BYTES = 100
SMALL = b"\x0a\x00"
LARGE = SMALL * INLINE_BYTES
"""MetricsData of empty ResourceMetrics, larger than the loop decompresses inline."""


class Receiver:
    """A receiver that stores every payload."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.payloads.append(payload.data)


class Elsewhere:
    """An `Offload` that the test completes."""

    def __init__(self, broker: Broker) -> None:
        self.jobs: list[tuple[PayloadWork, Callable[[bytes | Exception], None]]] = []
        broker.telemetry.offload = self

    def __call__(self, work: PayloadWork, done: Callable[[bytes | Exception], None]) -> None:
        self.jobs.append((work, done))

    def finish(self, result: bytes | Exception | None = None) -> None:
        work, done = self.jobs.pop()
        done(work() if result is None else result)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def client(receiver: Receiver) -> BrokerClient:
    """A client of a host with a receiver and a subscription to all metrics."""
    broker = make_broker(telemetry=TelemetryConfig(inline_bytes=INLINE_BYTES))
    broker.telemetry.plugin.add_receiver("any", receiver)
    broker.telemetry.update_subscription("all", {"metrics": "*"})
    return BrokerClient(broker)


@pytest.fixture
def elsewhere(client: BrokerClient) -> Elsewhere:
    return Elsewhere(client.broker)


def push(client: BrokerClient, metrics: bytes = SMALL, **fields: Any) -> PushTelemetryRequest:
    """A valid push of an instance that has just got its subscription."""
    subscription = client.send(GetTelemetrySubscriptionsRequest())
    known = {
        "client_instance_id": subscription.client_instance_id,
        "subscription_id": subscription.subscription_id,
    }
    return PushTelemetryRequest(**(known | {"metrics": metrics} | fields))


def pending(client: BrokerClient, request: PushTelemetryRequest) -> Deferred[Any]:
    """The deferred answer."""
    frame = request_header(RequestHeader(request.API_KEY, 0, 1, "test"), flexible=True) + encode(request, 0)
    answer = client.dispatcher.answer(frame, 0, client.connection)
    assert isinstance(answer, Deferred)
    return answer


def code(answer: Deferred[Any]) -> int:
    """The error code of an immediate answer."""
    frames: list[bytes] = []
    answer.when_done(frames.append)
    (frame,) = frames
    # length, correlation id, tags, throttle time, error code
    return int.from_bytes(frame[13:15], signed=True)


def test_a_small_push_is_answered_at_once(
    client: BrokerClient, receiver: Receiver, elsewhere: Elsewhere
) -> None:
    response = client.send(push(client))

    assert (response.error_code, response.throttle_time_ms) == (0, 0)
    assert receiver.payloads == [SMALL]
    assert elsewhere.jobs == []


@pytest.mark.parametrize("codec", Codec)
def test_a_large_push_is_answered_after_its_decompression(
    client: BrokerClient, receiver: Receiver, elsewhere: Elsewhere, codec: Codec
) -> None:
    answer = pending(client, push(client, compress(codec, LARGE), compression_type=codec))
    before = (answer.done, list(receiver.payloads))

    elsewhere.finish()

    assert before == (False, [])
    assert code(answer) == ErrorCode.NONE
    assert receiver.payloads == [LARGE]


def test_without_workers_a_large_push_is_decompressed_inline(
    client: BrokerClient, receiver: Receiver
) -> None:
    response = client.send(push(client, LARGE))

    assert response.error_code == ErrorCode.NONE
    assert receiver.payloads == [LARGE]


def test_a_large_push_that_is_not_otlp_is_an_invalid_record(client: BrokerClient, receiver: Receiver) -> None:
    response = client.send(push(client, b"\xff" * 2 * INLINE_BYTES))

    assert response.error_code == ErrorCode.INVALID_RECORD
    assert receiver.payloads == []


def test_a_push_is_delivered_even_if_its_client_disconnected(
    client: BrokerClient, receiver: Receiver, elsewhere: Elsewhere
) -> None:
    answer = pending(client, push(client, LARGE))
    answer.lost()

    elsewhere.finish()

    assert receiver.payloads == [LARGE]


def test_a_push_whose_worker_fails_is_throttled(client: BrokerClient, elsewhere: Elsewhere) -> None:
    answer = pending(client, push(client, LARGE))

    elsewhere.finish(RuntimeError("worker died"))

    assert code(answer) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_bug_after_the_worker_is_answered(
    client: BrokerClient, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.telemetry.receiver_plugin.ClientMetricsReceiverPlugin.export", None)
    answer = pending(client, push(client, LARGE))

    elsewhere.finish()

    assert code(answer) == ErrorCode.INVALID_REQUEST
    assert client.dispatcher.unexpected_errors == 1


@pytest.mark.parametrize("request_of", [push, lambda _: GetTelemetrySubscriptionsRequest()])
def test_a_bug_of_the_manager_is_an_invalid_request(
    client: BrokerClient, monkeypatch: pytest.MonkeyPatch, request_of: Callable[[BrokerClient], Any]
) -> None:
    request = request_of(client)
    monkeypatch.setattr("odradek.telemetry.client_instances.ClientInstances.instance", None)

    response = client.send(request)

    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert client.dispatcher.unexpected_errors == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"client_instance_id": NIL_UUID}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(1_048_577)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\xff"}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"\xff", "compression_type": Codec.ZSTD}, ErrorCode.INVALID_RECORD),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
def test_the_error_codes_of_the_manager_reach_the_client(
    client: BrokerClient, receiver: Receiver, fields: dict[str, Any], expected: ErrorCode
) -> None:
    response = client.send(push(client, **fields))

    assert response.error_code == expected
    assert bool(receiver.payloads) is (expected is ErrorCode.UNKNOWN_SUBSCRIPTION_ID)  # it is kept


def test_a_throttled_get_has_no_throttle_time(client: BrokerClient) -> None:
    first = client.send(GetTelemetrySubscriptionsRequest())

    second = client.send(GetTelemetrySubscriptionsRequest(client_instance_id=first.client_instance_id))

    assert (second.error_code, second.throttle_time_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 0)
