"""The times at which an instance may get a subscription and push. The interval is 300 s."""

from __future__ import annotations

import pytest

from odradek.metrics.metric_config import DEFAULT_CONFIG
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance, new_instance
from odradek.telemetry.client_metrics_stats import InstanceStats
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.subscriptions import SubscriptionPlan

NOW_MS = 1_700_000_000_000
ID = bytes(range(16))


@pytest.fixture
def instance() -> ClientMetricsInstance:
    metadata = ClientMetricsInstanceMetadata(ID, None, None, None, None, None)
    return new_instance(metadata, SubscriptionPlan((), 300_000, 0), 0, InstanceStats(ID, DEFAULT_CONFIG))


def played(instance: ClientMetricsInstance, *steps: tuple[str, int]) -> list[bool]:
    """The results of requests at the given offsets in ms: True if accepted, False if throttled."""
    gates = {"get": instance.maybe_update_get, "push": instance.maybe_update_push}
    return [gates[kind](NOW_MS + at_ms) for kind, at_ms in steps]


def test_get_and_push_at_once_are_accepted(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("get", 0), ("push", 0)) == [True, True]


def test_get_an_interval_after_a_get_is_accepted(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("get", -300_000), ("get", 0)) == [True, True]


def test_get_right_after_a_get_is_throttled(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("get", 0), ("get", 0)) == [True, False]


def test_push_an_interval_after_a_push_is_accepted(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("push", -300_000), ("push", 0)) == [True, True]


def test_get_right_after_a_push_is_throttled(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("push", 0), ("get", 1)) == [True, False]


def test_push_right_after_a_push_is_throttled(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("push", 0), ("push", 0)) == [True, False]


def test_push_right_after_a_get_is_accepted(instance: ClientMetricsInstance) -> None:
    assert played(instance, ("push", -300_000), ("get", 0), ("push", 1)) == [True, True, True]


def test_push_is_throttled_until_the_last_millisecond(instance: ClientMetricsInstance) -> None:
    steps = (("get", 0), ("push", 0), ("push", 299_999), ("push", 300_000))
    assert played(instance, *steps) == [True, True, False, True]
