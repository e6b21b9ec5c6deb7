"""Changes to subscriptions, and the guarantees that request handling relies on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from conformance.telemetry_broker import DATA, DEFAULT_PROPERTIES, PREFIXES, TelemetryBroker, metrics_with
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse


def state(broker: TelemetryBroker) -> tuple[int, int]:
    """The number of subscriptions, and the version of the set."""
    return len(broker.manager.subscriptions.by_name), broker.manager.subscriptions.version


def test_adding_a_subscription_changes_the_version() -> None:
    broker = TelemetryBroker()

    broker.update("sub-1", DEFAULT_PROPERTIES)

    subscription = broker.manager.subscriptions.by_name["sub-1"]
    assert (list(broker.manager.subscriptions.by_name), broker.manager.subscriptions.version) == (
        ["sub-1"],
        1,
    )
    assert set(subscription.metrics) == set(PREFIXES)
    assert subscription.interval_ms == 30_000
    assert subscription.match_pattern == {
        "client_software_name": "apache-kafka-java",
        "client_software_version": "3.5.*",
    }
    assert (broker.metric_count(), broker.metric("instance-count")) == (metrics_with(0), 0)


def test_empty_properties_of_an_unknown_name_change_nothing() -> None:
    broker = TelemetryBroker()

    broker.update("sub-1", {})

    assert state(broker) == (0, 0)


def test_missing_properties_fail_and_change_nothing() -> None:
    broker = TelemetryBroker()

    with pytest.raises(TypeError):
        broker.update("sub-1", cast(Any, None))

    assert state(broker) == (0, 0)


def test_unknown_key_is_an_invalid_request() -> None:
    broker = TelemetryBroker()

    with pytest.raises(ApiError) as refusal:
        broker.update("sub-1", {"random": "random"})

    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert state(broker) == (0, 0)


def test_added_subscription_can_be_deleted() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", {"interval.ms": "100"})
    added = state(broker)

    broker.update("sub-1", {})

    assert (added, state(broker)) == ((1, 1), (0, 2))


def test_identical_properties_count_as_a_change() -> None:
    broker = TelemetryBroker()

    for _ in range(2):
        broker.update("sub-1", DEFAULT_PROPERTIES)

    assert state(broker) == (1, 2)


def test_throttle_time_is_left_to_the_request_quota() -> None:
    broker = TelemetryBroker()
    told = broker.get()

    refused = broker.get(told.client_instance_id)

    assert (told.throttle_time_ms, refused.throttle_time_ms) == (0, 0)


def test_unexpected_failure_is_not_swallowed() -> None:
    def exhausted() -> bytes:
        raise RuntimeError("no entropy")

    broker = TelemetryBroker(random_uuid=exhausted)

    with pytest.raises(RuntimeError, match="no entropy"):
        broker.get()

    assert broker.manager.instances() == []


def test_error_answer_contains_only_a_code() -> None:
    broker = TelemetryBroker()
    told = broker.get()

    refused = broker.get(told.client_instance_id)

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused == replace(GetTelemetrySubscriptionsResponse(), error_code=code)
    assert refused.requested_metrics == []


@pytest.mark.parametrize("names", [["test1", "test2"], []])
def test_names_of_all_subscriptions_are_listed(names: list[str]) -> None:
    broker = TelemetryBroker()
    for name in names:
        broker.update(name, DEFAULT_PROPERTIES)

    listed = list(broker.manager.subscriptions.by_name)

    assert listed == names


def test_later_properties_replace_earlier_ones() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", DEFAULT_PROPERTIES)

    broker.update("sub-1", {"metrics": "*"})

    subscription = broker.manager.subscriptions.by_name["sub-1"]
    assert (subscription.metrics, subscription.interval_ms, subscription.match_pattern) == (
        ("*",),
        300_000,
        {},
    )


def test_push_answers_leave_throttle_time_to_the_request_quota_too() -> None:
    broker = TelemetryBroker()
    told = broker.get()

    codes = [broker.push(told, DATA), broker.push(told, DATA)]

    assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
