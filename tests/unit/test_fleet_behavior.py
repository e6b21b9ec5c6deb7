"""The clients of ``contrib/fleet``: when they ask, push and stop."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from contrib.fleet.behavior import KINDS, Client, mixed
from contrib.fleet.payloads import RecordedPayloads
from contrib.fleet.tally import Tally
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.types import NIL_UUID

ID = bytes(range(16))
INTERVAL_MS = 60_000


def client_of(name: str, *, settled: bool = False) -> Client:
    return Client(0, KINDS[name], random.Random(1), settled=settled)


def answer(**fields: object) -> GetTelemetrySubscriptionsResponse:
    values = {
        "client_instance_id": ID,
        "subscription_id": 7,
        "accepted_compression_types": [4, 3],
        "push_interval_ms": INTERVAL_MS,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**{**values, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "bounds"), [("java", (0.5, 1.5)), ("librdkafka", (0.8, 1.2)), ("franz-go", (0.5, 1.5))]
)
def test_the_first_push_has_the_jitter_of_its_library(name: str, bounds: tuple[float, float]) -> None:
    client = client_of(name)

    waits = [client.answered(answer()) or 0.0 for _ in range(500)]

    low, high = (bound * INTERVAL_MS for bound in bounds)
    assert low <= min(waits) < low * 1.05
    assert high * 0.95 < max(waits) <= high


def test_a_settled_fleet_begins_anywhere_in_the_interval() -> None:
    waits = [client_of("java", settled=True).answered(answer()) or 0.0 for _ in range(3)]
    source = random.Random(1)
    many = [Client(0, KINDS["java"], source, settled=True).answered(answer()) or 0.0 for _ in range(500)]

    assert waits[0] < INTERVAL_MS
    assert min(many) < 0.05 * INTERVAL_MS
    assert 0.95 * INTERVAL_MS < max(many) <= INTERVAL_MS


def test_the_id_is_asked_for_once_and_the_answer_is_obeyed() -> None:
    client = client_of("java")
    first = client.ask()
    client.answered(answer())

    push, after_ms = client.push(b"data"), client.pushed(0)

    assert first.client_instance_id == NIL_UUID
    assert (push.client_instance_id, push.subscription_id, push.compression_type) == (ID, 7, 4)
    assert after_ms == INTERVAL_MS
    assert client.ask().client_instance_id == ID


@pytest.mark.parametrize("name", KINDS)
def test_a_client_without_metrics_asks_again_after_the_interval(name: str) -> None:
    client = client_of(name)

    after_ms = client.answered(answer(requested_metrics=[]))

    assert (after_ms, client.asks, client.says_goodbye) == (INTERVAL_MS, True, False)


ASKS, NOW, STOPS, PUSHES = (INTERVAL_MS, True), (0, True), (None, False), (INTERVAL_MS, False)


@pytest.mark.parametrize(
    ("error", "java", "librdkafka", "franz_go"),
    [
        (ErrorCode.NONE, PUSHES, PUSHES, PUSHES),
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, NOW, NOW, NOW),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, NOW, ASKS, PUSHES),
        (ErrorCode.TELEMETRY_TOO_LARGE, ASKS, PUSHES, PUSHES),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ASKS, ASKS, PUSHES),
        (ErrorCode.INVALID_RECORD, STOPS, STOPS, STOPS),
        (ErrorCode.INVALID_REQUEST, STOPS, STOPS, STOPS),
    ],
)
def test_an_error_has_the_effect_that_it_has_in_the_library(
    error: ErrorCode,
    java: tuple[float | None, bool],
    librdkafka: tuple[float | None, bool],
    franz_go: tuple[float | None, bool],
) -> None:
    found = []

    for name in KINDS:
        client = client_of(name)
        client.answered(answer())
        found.append((client.pushed(error), client.asks))

    assert found == [java, librdkafka, franz_go]


@pytest.mark.parametrize(
    ("name", "first_ms", "later_ms"), [("java", 300_000, 60_000), ("franz-go", 30_000, 30_000)]
)
def test_a_refused_request_for_subscriptions_is_repeated_later(
    name: str, first_ms: int, later_ms: int
) -> None:
    client = client_of(name)
    refused = GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    before = client.answered(refused)
    client.answered(answer())

    assert (before, client.answered(refused)) == (first_ms, later_ms)


def test_each_stretch_of_a_fleet_has_the_shares_of_the_mix() -> None:
    kinds = mixed({"java": 60, "librdkafka": 30, "franz-go": 10}, 1_000)

    for begin in range(0, 1_000, 100):
        counts = Counter(kind.name for kind in kinds[begin : begin + 100])
        assert all(abs(counts[name] - share) <= 1 for name, share in (("java", 60), ("franz-go", 10)))


@pytest.mark.parametrize(
    ("shares", "problem"), [({"kio": 1.0}, "'kio'"), ({"java": 0.0}, "above 0"), ({}, "above")]
)
def test_a_mix_without_clients_is_refused(shares: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        mixed(shares, 10)


def test_payloads_have_the_metrics_of_the_recording_and_the_time_of_the_push() -> None:
    payloads = RecordedPayloads(["librdkafka-producer"], variants=2)

    data = MetricsData.FromString(payloads.push("librdkafka-producer", random.Random(1), 5 * 10**9, 1_000))

    points = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in (*metric.gauge.data_points, *metric.sum.data_points)
    ]
    assert len(points) > 5
    assert {(point.start_time_unix_nano, point.time_unix_nano) for point in points} == {
        (4 * 10**9, 5 * 10**9)
    }


def test_late_requests_are_counted() -> None:
    tally = Tally()
    for late_s in (-0.001, 0.05, 0.2, 3.0):
        tally.sent(late_s)

    assert tally.summary(1.0, 0.1)["late"] == {
        "pushes": 2, "of_ms": 100, "p50": 200.0, "p99": 3000.0, "p99.9": 3000.0, "max": 3000.0
    }  # fmt: skip
