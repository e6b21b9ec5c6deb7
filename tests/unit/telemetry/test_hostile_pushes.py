"""The cost of a hostile push on the event loop. The goal is 5 ms; the bound allows for a busy machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping

import pytest

from conformance.telemetry_broker import TelemetryBroker
from odradek.broker.handlers.push_telemetry import Answer
from odradek.otlp.protobuf_bytes import delimited
from odradek.plugin import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.compression import Codec, CorruptData, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

BUDGET_S = 0.02
EMPTY_ENTRY = b"\x0a\x00"


class Team:
    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        return {"team": "a", "node_id": "1"}


def entry(rack: int) -> bytes:
    """A ResourceMetrics whose Resource has an attribute with that key."""
    return delimited(0x0A, delimited(0x0A, delimited(0x0A, delimited(0x0A, b"%d" % rack))))


def nested(depth: int) -> bytes:
    """An attribute whose value is a deeply nested list."""
    value = b""
    for _ in range(depth):
        value = delimited(0x2A, delimited(0x0A, value))
    attribute = delimited(0x0A, delimited(0x0A, b"k") + delimited(0x12, value))
    return delimited(0x0A, delimited(0x0A, attribute))


HOSTILE = {
    "a million empty entries": EMPTY_ENTRY * 1_000_000,
    "as many as are opened at once": EMPTY_ENTRY * 32_000,
    "nested values": nested(10_000),
    "a thousand different resources": b"".join(map(entry, range(1000))),
    "thousands of entries, two resources": b"".join(entry(index % 2) for index in range(5000)),
    "thousands of attributes": delimited(0x0A, delimited(0x0A, EMPTY_ENTRY * 32_000)),
    "thousands of scopes": delimited(0x0A, b"\x12\x00" * 32_000),
    "thousands of unknown fields": b"\xf8\x3f\x01" * 20_000,
    "a long resource, then many": delimited(0x0A, delimited(0x0A, b"\x0a\x00" * 15_000))
    + b"\x0a\x02\x0a\x00" * 8000,
    "random text": b"test-data" * 7000,
}


def cheapest_push(broker: TelemetryBroker, codec: int, metrics: bytes) -> tuple[float, Answer]:
    """CPU seconds of the cheapest of three pushes, each by a new client, and the last answer."""
    costs = []
    for _ in range(3):
        told = broker.get()
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            compression_type=codec,
            metrics=metrics,
        )
        started = time.process_time()
        answer = broker.send(request)
        costs.append(time.process_time() - started)
    return min(costs), answer


@pytest.fixture
def broker() -> TelemetryBroker:
    broker = TelemetryBroker(telemetry_max_bytes=4_000_000)
    broker.enrichers.register("team", Team())
    return broker


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD, Codec.LZ4])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payload_costs_the_event_loop_little(
    broker: TelemetryBroker, name: str, codec: Codec
) -> None:
    metrics = compress(codec, HOSTILE[name])

    cost_s, _ = cheapest_push(broker, codec, metrics)

    assert cost_s < BUDGET_S


@pytest.mark.parametrize("codec", list(Codec))
def test_bomb_is_not_decompressed_on_the_event_loop(broker: TelemetryBroker, codec: Codec) -> None:
    bomb = compress(codec, bytes(3_900_000))

    cost_s, answer = cheapest_push(broker, codec, bomb)

    assert cost_s < BUDGET_S
    assert isinstance(answer, Deferred)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("as many as are opened at once", ErrorCode.TELEMETRY_TOO_LARGE),
        ("nested values", ErrorCode.INVALID_RECORD),
        ("a thousand different resources", ErrorCode.TELEMETRY_TOO_LARGE),
        ("random text", ErrorCode.INVALID_RECORD),
    ],
)
def test_hostile_payload_gets_the_right_error_code(
    broker: TelemetryBroker, name: str, code: ErrorCode
) -> None:
    _, answer = cheapest_push(broker, Codec.NONE, HOSTILE[name])

    response = answer if isinstance(answer, PushTelemetryResponse) else broker.finish(answer)
    assert response.error_code == code


def test_a_push_that_cannot_be_decompressed_is_freed_at_once() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        compression_type=Codec.GZIP,
        metrics=b"no gzip",
    )

    gc.collect()
    gc.disable()
    try:
        broker.send(request)
        left = [each for each in gc.get_objects() if isinstance(each, CorruptData)]
    finally:
        gc.enable()

    assert left == []
