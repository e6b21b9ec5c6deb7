"""The subscriptions of a gateway come from the cluster, from the file, or from both."""

from __future__ import annotations

import logging

import pytest

from odradek.gateway.cluster_subscriptions import ClusterSubscriptions, Wanted
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.telemetry.subscriptions import Subscriptions
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.testing.clock import MockClock

ALL: Wanted = {"all": {"metrics": "*"}}
OF_CLUSTER: Wanted = {"a": {"metrics": "cluster.a"}, "b": {"metrics": "cluster.b"}}
OF_FILE: Wanted = {"b": {"metrics": "file.b"}, "c": {"metrics": "file.c"}}


def made(
    source: SubscriptionSource = SubscriptionSource.BOTH,
    known: Wanted | None = None,
    config: TelemetryConfig | None = None,
) -> ClusterSubscriptions:
    clock = MockClock()
    return ClusterSubscriptions(source, Subscriptions(config or TelemetryConfig(), clock), clock, known)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SubscriptionSource.CLUSTER, OF_CLUSTER),
        (SubscriptionSource.FILE, OF_FILE),
        (SubscriptionSource.BOTH, {"a": OF_CLUSTER["a"], **OF_FILE}),
    ],
)
def test_the_sources(source: SubscriptionSource, expected: Wanted) -> None:
    found = made(source)
    found.listed(OF_CLUSTER, {})

    assert found.combined(OF_FILE) == expected


@pytest.mark.parametrize("source", SubscriptionSource)
def test_the_file_applies_until_the_cluster_is_known(source: SubscriptionSource) -> None:
    assert made(source).combined(OF_FILE) == OF_FILE


def test_a_restart_uses_the_last_known_subscriptions() -> None:
    found = made(SubscriptionSource.CLUSTER, known=OF_CLUSTER)
    found.failed("no broker answers")

    assert found.combined(OF_FILE) == OF_CLUSTER


def test_a_failed_poll_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = made()
    found.listed(OF_CLUSTER, {})
    before = found.combined(OF_FILE)

    for _ in range(360):  # an hour of polls
        found.failed("no broker answers")

    assert found.combined(OF_FILE) == before
    assert found.polls == {"ok": 1, "refused": 0, "failed": 360}
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("source", [SubscriptionSource.CLUSTER, SubscriptionSource.BOTH])
def test_a_cluster_that_refuses_leaves_the_file_and_says_so_once(
    source: SubscriptionSource, caplog: pytest.LogCaptureFixture
) -> None:
    found = made(source, known=OF_CLUSTER)

    for _ in range(5):
        found.refused("not allowed")

    assert found.combined(OF_FILE) == OF_FILE
    assert caplog.messages == ["subscriptions are taken from the file only: not allowed"]


def test_a_cluster_that_lists_again_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = made()
    found.refused("no")

    found.listed(OF_CLUSTER, {})
    found.refused("no")

    assert len(caplog.messages) == 3
    assert found.combined({}) == {}


def test_a_subscription_that_was_deleted_is_gone() -> None:
    found = made()
    found.listed(OF_CLUSTER, {})

    found.listed({"b": OF_CLUSTER["b"]}, OF_CLUSTER)

    assert found.combined({}) == {"b": OF_CLUSTER["b"]}


@pytest.mark.parametrize(
    "properties",
    [
        {"metrics": "*", "match": "client_id=(?=a)b"},  # Java can look ahead, RE2 cannot
        {"metrics": "*", "match": "client_rack=a"},
        {"metrics": "*", "interval.ms": "1"},
        {"metrics": "*", "of.a.newer.kafka": "1"},
    ],
)
def test_a_subscription_that_is_not_valid_here_is_left_out(
    properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    found = made()

    for _ in range(3):
        found.listed({"bad": properties, **ALL}, ALL)

    assert found.combined({}) == ALL
    assert list(found.left_out) == ["bad"]
    assert len(caplog.messages) == 1


def test_the_limits_of_the_host_hold_for_the_cluster_too() -> None:
    found = made(config=TelemetryConfig(max_subscriptions=2))

    found.listed({name: {"metrics": "*"} for name in "abcd"}, {})

    assert (sorted(found.combined({})), sorted(found.left_out)) == (["a", "b"], ["c", "d"])


def test_metrics_of_the_polls() -> None:
    found = made()
    found.listed(OF_CLUSTER, {})
    assert isinstance(found.clock, MockClock)
    found.clock.advance(2_500)
    found.failed("no broker answers")

    rows = {(row.name, *row.attributes.values()): row.value for row in found.metric_rows()}

    assert rows == {
        ("odradek.gateway.subscriptions",): 0,
        ("odradek.gateway.subscriptions.of.cluster",): 2,
        ("odradek.gateway.subscriptions.left.out",): 0,
        ("odradek.gateway.subscription.polls", "ok"): 1,
        ("odradek.gateway.subscription.polls", "refused"): 0,
        ("odradek.gateway.subscription.polls", "failed"): 1,
        ("odradek.gateway.subscriptions.age",): 2.5,
    }


def test_there_is_no_age_before_the_first_good_poll() -> None:
    assert "odradek.gateway.subscriptions.age" not in {row.name for row in made().metric_rows()}
