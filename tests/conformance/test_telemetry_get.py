"""Answers to GetTelemetrySubscriptions."""

from __future__ import annotations

import random

import pytest

from conformance.telemetry_broker import (
    DATA,
    DEFAULT_PROPERTIES,
    PREFIXES,
    Broken,
    TelemetryBroker,
    counted,
    metrics_with,
)
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.types import NIL_UUID

NONE = ErrorCode.NONE
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_first_get_returns_the_matching_subscription() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", DEFAULT_PROPERTIES)

    told = broker.get()

    assert (told.error_code, told.push_interval_ms, told.telemetry_max_bytes) == (NONE, 30_000, 100)
    assert told.client_instance_id != NIL_UUID
    assert told.subscription_id != 0
    assert sorted(told.requested_metrics) == sorted(PREFIXES)
    assert told.accepted_compression_types == [4, 3, 1, 2]
    assert told.delta_temporality
    assert broker.known(told).last_known_error is NONE
    assert broker.metric_count() == metrics_with(1)
    assert broker.metric("instance-count") == 1
    assert broker.counts(told) == counted()
    for name in ("throttle-rate", "plugin-export-rate", "plugin-error-rate"):
        assert broker.metric(name, told) == 0
    assert broker.metric("unknown-subscription-request-rate") == 0
    assert broker.never_timed(told)


def test_a_host_may_ask_for_totals() -> None:
    broker = TelemetryBroker(delta_temporality=False)

    assert not broker.get().delta_temporality


def test_first_requests_pass_on_a_machine_that_has_just_started() -> None:
    broker = TelemetryBroker()
    broker.clock.time_ms = 0  # the monotonic clock

    told = broker.get()

    assert (told.error_code, broker.push(told)) == (NONE, NONE)


def test_without_subscriptions_a_get_returns_the_defaults() -> None:
    broker = TelemetryBroker()

    told = broker.get()

    assert told == GetTelemetrySubscriptionsResponse(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        accepted_compression_types=[4, 3, 1, 2],
        push_interval_ms=300_000,
        telemetry_max_bytes=100,
        delta_temporality=True,
    )


def test_get_after_the_interval_is_accepted() -> None:
    broker = TelemetryBroker()
    first = broker.get()
    broker.clock.time_ms += 300_000

    second = broker.get(first.client_instance_id)

    assert (first.error_code, second.error_code) == (NONE, NONE)
    assert second.client_instance_id == first.client_instance_id


def test_star_replaces_all_prefixes_and_the_shortest_interval_wins() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", DEFAULT_PROPERTIES)
    broker.update("sub-2", {"metrics": "*"})

    told = broker.get()

    assert (told.requested_metrics, told.push_interval_ms) == (["*"], 30_000)


def test_immediate_retry_is_throttled() -> None:
    broker = TelemetryBroker()
    told = broker.get()

    again = broker.get(told.client_instance_id)

    assert again.error_code == THROTTLED
    assert broker.metric("instance-count") == 1
    assert broker.counts(told) == counted(throttle=1)
    assert broker.metric("throttle-rate", told) > 0


def test_get_right_after_a_push_on_another_broker_is_throttled() -> None:
    told, other = TelemetryBroker().get(), TelemetryBroker()
    pushed = other.push(told)

    again = other.get(told.client_instance_id)

    assert (pushed, again.error_code) == (NONE, THROTTLED)
    assert other.metric("throttle-count", told) == 1


def test_changed_subscriptions_allow_an_early_get() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", DEFAULT_PROPERTIES)
    first = broker.get()
    broker.update("sub-2", {"metrics": "*"})

    second = broker.get(first.client_instance_id)

    assert second.error_code == NONE
    assert second.subscription_id != first.subscription_id


def test_of_two_gets_with_a_new_id_one_is_throttled() -> None:
    broker = TelemetryBroker()
    client_instance_id = random.Random(8).randbytes(16)

    answers = [broker.get(client_instance_id) for _ in range(2)]

    assert [answer.error_code for answer in answers] == [NONE, THROTTLED]
    assert broker.metric("throttle-count", answers[0]) == 1


def test_of_two_gets_after_an_update_one_is_throttled() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    broker.update("sub-1", DEFAULT_PROPERTIES)

    answers = [broker.get(told.client_instance_id) for _ in range(2)]

    assert [answer.error_code for answer in answers] == [NONE, THROTTLED]
    assert broker.metric("throttle-count", told) == 1


def test_get_after_unknown_subscription_push_is_accepted() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    pushed = broker.push(told, subscription_id=1234)

    again = broker.get(told.client_instance_id)

    assert (pushed, again.error_code) == (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, NONE)


def test_get_after_unsupported_compression_type_push_is_accepted() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    pushed = broker.push(told, codec=100)

    again = broker.get(told.client_instance_id)

    assert (pushed, again.error_code) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, NONE)


def test_early_get_is_accepted_once_and_does_not_count_as_a_get() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    broker.push(told, subscription_id=1234)
    broker.get(told.client_instance_id)

    codes = [broker.get(told.client_instance_id).error_code, broker.push(told)]

    assert codes == [THROTTLED, THROTTLED]


def test_get_after_a_throttled_push_is_throttled() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    codes = [broker.push(told), broker.push(told)]

    again = broker.get(told.client_instance_id)

    assert ([*codes, again.error_code]) == [NONE, THROTTLED, THROTTLED]


def test_get_after_a_push_that_was_too_large_is_throttled() -> None:
    broker = TelemetryBroker(telemetry_max_bytes=1)
    told = broker.get()
    pushed = broker.push(told)

    again = broker.get(told.client_instance_id)

    assert (pushed, again.error_code) == (ErrorCode.TELEMETRY_TOO_LARGE, THROTTLED)


def test_get_after_an_invalid_record_is_throttled() -> None:
    broker = TelemetryBroker(ErrorPolicy.KAFKA)
    broker.plugin.add_receiver("broken", Broken())
    told = broker.get()
    pushed = broker.push(told, DATA)

    again = broker.get(told.client_instance_id)

    assert (pushed, again.error_code) == (ErrorCode.INVALID_RECORD, THROTTLED)


def test_no_subscription_makes_the_interval_longer_than_the_default() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", {"interval.ms": "3600000", "metrics": "*"})

    told = broker.get()

    assert told.push_interval_ms == 300_000


def test_second_get_without_an_id_creates_a_second_instance() -> None:
    broker = TelemetryBroker()

    answers = [broker.get(connection_id="conn-1") for _ in range(2)]

    assert [answer.error_code for answer in answers] == [NONE, NONE]
    assert answers[0].client_instance_id != answers[1].client_instance_id
    assert broker.metric("instance-count") == 2


def test_get_ignores_terminating() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    broker.push(told, terminating=True)
    broker.clock.time_ms += 300_000

    again = broker.get(told.client_instance_id)

    assert again.error_code == NONE


def test_get_accepts_the_id_that_kafka_reserves_for_itself() -> None:
    broker = TelemetryBroker()

    told = broker.get(bytes(15) + b"\x01")

    assert (told.error_code, told.client_instance_id) == (NONE, bytes(15) + b"\x01")


def test_matching_subscription_without_metrics_still_shortens_the_interval() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", {"interval.ms": "1000"})

    told = broker.get()

    assert (told.requested_metrics, told.push_interval_ms) == ([], 1000)


@pytest.mark.parametrize(
    "unwanted",
    [NIL_UUID, bytes(15) + b"\x01", b"\xf8" + bytes(15), b"\xfb" + bytes(15), b"\x01" * 16],
    ids=["nil", "one", "dash", "dash with other bits", "taken"],
)
def test_an_unusable_random_id_is_drawn_again(unwanted: bytes) -> None:
    draws = iter([b"\x01" * 16, unwanted, b"\x02" * 16])
    broker = TelemetryBroker(random_uuid=lambda: next(draws))
    broker.get()

    told = broker.get()

    assert told.client_instance_id == b"\x02" * 16
