"""Scenarios S1 to S6 (subscriptions), R1 to R4 (what the request layer relies on)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from conformance.telemetry_world import DATA, DEFAULT_PROPERTIES, PREFIXES, World
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse


def state(world: World) -> tuple[int, int]:
    """Number of subscriptions, and version."""
    return len(world.manager.subscription_names()), world.manager.subscriptions.version


def test_S1_add_a_subscription() -> None:
    world = World()

    world.update("sub-1", DEFAULT_PROPERTIES)

    subscription = world.manager.subscriptions.by_name["sub-1"]
    assert (world.manager.subscription_names(), world.manager.subscriptions.version) == (["sub-1"], 1)
    assert set(subscription.metrics) == set(PREFIXES)
    assert subscription.interval_ms == 30_000
    assert subscription.match_pattern == {
        "client_software_name": "apache-kafka-java",
        "client_software_version": "3.5.*",
    }
    assert (world.metric_count(), world.metric("instance-count")) == (3, 0)


def test_S2_empty_properties_of_an_unknown_name_change_nothing() -> None:
    world = World()

    world.update("sub-1", {})

    assert state(world) == (0, 0)


def test_S3_no_properties_at_all_fail_and_change_nothing() -> None:
    world = World()

    with pytest.raises(TypeError):
        world.update("sub-1", cast(Any, None))

    assert state(world) == (0, 0)


def test_S4_unknown_key_is_an_invalid_request() -> None:
    world = World()

    with pytest.raises(ApiError) as refusal:
        world.update("sub-1", {"random": "random"})

    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert state(world) == (0, 0)


def test_S5_add_then_delete() -> None:
    world = World()
    world.update("sub-1", {"interval.ms": "100"})
    added = state(world)

    world.update("sub-1", {})

    assert (added, state(world)) == ((1, 1), (0, 2))


def test_S6_identical_properties_are_a_change_too() -> None:
    world = World()

    for _ in range(2):
        world.update("sub-1", DEFAULT_PROPERTIES)

    assert state(world) == (1, 2)


def test_R1_throttle_time_is_left_to_the_request_quota() -> None:
    world = World()
    told = world.get()

    refused = world.get(told.client_instance_id)

    assert (told.throttle_time_ms, refused.throttle_time_ms) == (0, 0)


def test_R2_unexpected_failure_is_not_swallowed() -> None:
    def exhausted() -> bytes:
        raise RuntimeError("no entropy")

    world = World(random_uuid=exhausted)

    with pytest.raises(RuntimeError, match="no entropy"):
        world.get()

    assert world.manager.instances() == []


def test_R3_error_answer_has_a_code_and_nothing_else() -> None:
    world = World()
    told = world.get()

    refused = world.get(told.client_instance_id)

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert refused == replace(GetTelemetrySubscriptionsResponse(), error_code=code)
    assert refused.requested_metrics == []


@pytest.mark.parametrize("names", [["test1", "test2"], []])
def test_R4_names_of_all_subscriptions(names: list[str]) -> None:
    world = World()
    for name in names:
        world.update(name, DEFAULT_PROPERTIES)

    listed = world.manager.subscription_names()

    assert listed == names


def test_later_properties_replace_earlier_ones() -> None:
    world = World()
    world.update("sub-1", DEFAULT_PROPERTIES)

    world.update("sub-1", {"metrics": "*"})

    subscription = world.manager.subscriptions.by_name["sub-1"]
    assert (subscription.metrics, subscription.interval_ms, subscription.match_pattern) == (
        ("*",),
        300_000,
        {},
    )


def test_push_answers_leave_throttle_time_alone_too() -> None:
    world = World()
    told = world.get()

    codes = [world.push(told, DATA), world.push(told, DATA)]

    assert codes == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
