"""The log says when the last subscription is removed: from then on clients push nothing."""

from __future__ import annotations

import logging

import pytest

from odradek.telemetry.subscriptions import NO_SUBSCRIPTION, Subscriptions
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.testing.clock import MockClock

WANTED = {"metrics": "*"}


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def subscriptions(clock: MockClock) -> Subscriptions:
    found = Subscriptions(TelemetryConfig(), clock)
    found.update("a", WANTED)
    found.update("b", WANTED)
    return found


def test_removing_the_last_subscription_is_logged(
    subscriptions: Subscriptions, caplog: pytest.LogCaptureFixture
) -> None:
    subscriptions.update("a", {})
    before = list(caplog.messages)

    subscriptions.update("b", {})

    assert (before, caplog.messages) == ([], [NO_SUBSCRIPTION])
    assert (caplog.records[0].levelno, vars(caplog.records[0])["removed"]) == (logging.WARNING, "b")


def test_a_subscription_that_does_not_exist_is_not_removed(
    clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    Subscriptions(TelemetryConfig(), clock).update("a", {})

    assert caplog.messages == []


def test_a_client_that_sets_and_removes_it_again_and_again_does_not_fill_the_log(
    subscriptions: Subscriptions, clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    subscriptions.update("a", {})

    for _ in range(10):
        subscriptions.update("b", {})
        subscriptions.update("b", WANTED)
    clock.advance(60_000)
    subscriptions.update("b", {})

    assert caplog.messages == [NO_SUBSCRIPTION] * 2
    assert vars(caplog.records[1])["unlogged"] == 9
