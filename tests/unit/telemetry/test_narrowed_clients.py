"""Clients whose pushes are too large are asked for fewer metrics until they fit."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from conformance.telemetry_broker import DATA, TelemetryBroker
from odradek.findings.client_metrics import client_metrics
from odradek.telemetry.narrowed_clients import OF_CLIENTS, OF_NODES, narrower_plans
from odradek.telemetry.subscription_id import subscription_checksum
from odradek.telemetry.subscriptions import SubscriptionPlan
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.uuid_text import uuid_text

Told = GetTelemetrySubscriptionsResponse
NONE, TOO_LARGE, UNKNOWN = (
    ErrorCode.NONE,
    ErrorCode.TELEMETRY_TOO_LARGE,
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
)
INTERVAL_MS = 1_000
ALL = {"metrics": "*", "interval.ms": str(INTERVAL_MS)}
LARGE = bytes(101)
WIDEN_MS = 3_600_000


@pytest.fixture
def broker() -> TelemetryBroker:
    broker = TelemetryBroker()
    broker.update("all", ALL)
    return broker


def interval(broker: TelemetryBroker, intervals: float = 1) -> None:
    broker.clock.advance(int(intervals * INTERVAL_MS))
    broker.clock.timer.run_due(broker.clock.monotonic_ms())


def java(broker: TelemetryBroker, told: Told, size: Callable[[Told], int]) -> tuple[ErrorCode, Told]:
    """A push as Java's client makes it, and what it is told when it asks afterwards."""
    code = broker.push(told, DATA if size(told) <= 100 else LARGE, connection_id="one")
    if code is TOO_LARGE:
        interval(broker)
    if code is not NONE:
        told = broker.get(told.client_instance_id, "one")
        assert told.error_code == NONE
    interval(broker)
    return code, told


def narrowed(broker: TelemetryBroker) -> dict[str, str]:
    rows = broker.manager.metric_rows()
    return {
        row.attributes["client_instance_id"]: row.attributes["metrics"]
        for row in rows
        if row.name == "odradek.push.narrowed"
    }


def needs(told: Told) -> int:
    """The size of the pushes of a client whose standard metrics fit."""
    return 1_000 if told.requested_metrics == ["*"] else 50


def told_less(broker: TelemetryBroker) -> Told:
    """The subscription of a client after two pushes that were too large."""
    told = broker.get(connection_id="one")
    for _ in range(2):
        _, told = java(broker, told, lambda _: 101)
    assert set(told.requested_metrics) == {*OF_CLIENTS, *OF_NODES}
    return told


def test_client_that_repeats_a_push_that_is_too_large_is_asked_for_less(
    broker: TelemetryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    told = broker.get(connection_id="one")
    codes = []

    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            code, told = java(broker, told, needs)
            codes.append(code)

    assert codes == [TOO_LARGE, TOO_LARGE, NONE, NONE, NONE]
    assert set(told.requested_metrics) == {*OF_CLIENTS, *OF_NODES}
    assert narrowed(broker) == {uuid_text(told.client_instance_id): "standard"}
    assert [record.message for record in caplog.records] == [
        "pushes of a client are too large, it is asked for fewer metrics"
    ]


def test_client_that_does_not_ask_after_the_error_is_told_by_the_next_one(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="one")
    codes = []

    for _ in range(3):
        interval(broker)
        codes.append(broker.push(told, LARGE, connection_id="one"))
    told = broker.get(told.client_instance_id, "one")
    interval(broker)
    codes.append(broker.push(told, DATA, connection_id="one"))

    assert codes == [TOO_LARGE, TOO_LARGE, UNKNOWN, NONE]
    assert set(told.requested_metrics) == {*OF_CLIENTS, *OF_NODES}


def test_client_is_asked_for_less_and_less_until_it_fits(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="one")
    asked = []

    for _ in range(6):
        _, told = java(broker, told, lambda told: 101 if told.requested_metrics else 0)
        asked.append(len(told.requested_metrics))

    assert asked == [1, len(OF_CLIENTS + OF_NODES), len(OF_CLIENTS), 0, 0, 0]


def test_one_push_that_is_too_large_changes_nothing(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="one")
    sizes = iter([101, 50, 50, 50, 101, 50])

    codes = []
    for _ in range(6):
        code, told = java(broker, told, lambda _: next(sizes))
        codes.append(code)

    assert codes == [TOO_LARGE, NONE, NONE, NONE, TOO_LARGE, NONE]
    assert told.requested_metrics == ["*"]
    assert narrowed(broker) == {}


def test_client_gets_its_metrics_back_when_it_has_fitted_for_a_while(
    broker: TelemetryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    told = told_less(broker)
    asked = [told.requested_metrics]
    caplog.clear()

    with caplog.at_level(logging.INFO):
        for _ in range(WIDEN_MS // INTERVAL_MS + 2):
            _, told = java(broker, told, lambda _: 50)
            asked.append(told.requested_metrics)

    assert [len(each) for each in asked] == sorted((len(each) for each in asked), reverse=True)
    assert (told.requested_metrics, narrowed(broker)) == (["*"], {})
    assert [record.message for record in caplog.records] == [
        "pushes of a client have fitted, it is asked for more metrics"
    ]


def test_client_that_still_does_not_fit_waits_twice_as_long(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="one")
    size = {"*": 101}
    widened_at = []
    for step in range(4 * WIDEN_MS // INTERVAL_MS):
        before = told.requested_metrics
        _, told = java(broker, told, lambda told: size.get(told.requested_metrics[0], 50))
        if told.requested_metrics == ["*"] and before != ["*"]:
            widened_at.append(broker.clock.monotonic_ms())
        if step > 5 and not narrowed(broker) and len(widened_at) == 2:
            break

    first, second = widened_at
    assert 2 * WIDEN_MS <= second - first <= 2 * WIDEN_MS + 10 * INTERVAL_MS


def test_changed_subscription_is_tried_at_once(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="one")
    for _ in range(3):
        _, told = java(broker, told, needs)

    broker.update("other", {"metrics": "org.apache.kafka.consumer.", "match": "client_id=nobody"})
    unchanged = broker.get(told.client_instance_id, "one")
    broker.update("all", ALL | {"metrics": "org.apache.kafka.producer."})
    interval(broker)
    changed = broker.get(told.client_instance_id, "one")

    assert unchanged.subscription_id == told.subscription_id
    assert (changed.requested_metrics, narrowed(broker)) == (["org.apache.kafka.producer."], {})


def test_client_survives_reconnects_between_its_pushes(broker: TelemetryBroker) -> None:
    told = broker.get(connection_id="0")
    codes = []
    for turn in range(4):
        codes.append(broker.push(told, LARGE if needs(told) > 100 else DATA, connection_id=str(turn)))
        broker.manager.connection_closed(str(turn))
        interval(broker)
        told = broker.get(told.client_instance_id, f"get-{turn}")
        broker.manager.connection_closed(f"get-{turn}")
        interval(broker)

    assert codes == [TOO_LARGE, TOO_LARGE, NONE, NONE]


def test_another_host_knows_the_narrower_subscription(broker: TelemetryBroker) -> None:
    other = TelemetryBroker()
    other.update("all", ALL)
    told = broker.get(connection_id="one")
    for _ in range(3):
        _, told = java(broker, told, needs)

    code = other.push(told, connection_id="two")
    interval(other)
    again = other.get(told.client_instance_id, "two")

    assert (code, again.subscription_id) == (NONE, told.subscription_id)
    assert narrowed(other) == narrowed(broker)


def test_host_that_asks_for_more_again_does_not_believe_the_old_id(broker: TelemetryBroker) -> None:
    less = told_less(broker)
    told = less
    while told.requested_metrics != ["*"]:
        _, told = java(broker, told, lambda _: 50)

    codes = []
    for each in (less, told):
        interval(broker)
        codes.append(broker.push(each, connection_id="one"))

    assert codes == [UNKNOWN, NONE]


def test_kafka_policy_and_the_setting_change_nothing() -> None:
    kafka = TelemetryBroker(ErrorPolicy.KAFKA)
    off = TelemetryBroker(narrow_too_large=False)
    asked = []

    for broker in (kafka, off):
        broker.update("all", ALL)
        told = broker.get(connection_id="one")
        for _ in range(5):
            _, told = java(broker, told, needs)
        asked.append((told.requested_metrics, narrowed(broker)))

    assert asked == [(["*"], {})] * 2


def test_host_remembers_no_more_clients_than_instances() -> None:
    broker = TelemetryBroker(cache_size=2)
    broker.update("all", ALL)

    for turn in range(10):
        told = broker.get(connection_id=str(turn))
        for _ in range(2):
            interval(broker)
            broker.push(told, LARGE, connection_id=str(turn))

    assert len(broker.manager.narrowed.entries) == 2
    broker.manager.close()
    assert len(broker.clock.timer) == 0


def plan(*metrics: str) -> SubscriptionPlan:
    return SubscriptionPlan(metrics, 1_000, subscription_checksum(metrics, 1_000))


@pytest.mark.parametrize(
    ("metrics", "narrower"),
    [
        (["*"], [{*OF_CLIENTS, *OF_NODES}, {*OF_CLIENTS}, set()]),
        (["org.apache.kafka.consumer.node."], [{OF_NODES[1]}, set()]),
        (["org.apache.kafka.consumer.poll.idle.ratio.avg"], [set()]),
        (["com.example."], [set()]),
        ([], []),
    ],
)
def test_narrower_plans(metrics: list[str], narrower: list[set[str]]) -> None:
    found = narrower_plans(plan(*metrics))

    assert [set(each.metrics) for _, each in found] == narrower
    assert len({each.checksum for _, each in found}) == len(found)


def test_clients_of_equal_plans_share_the_narrower_plans() -> None:
    first, second = narrower_plans(plan("*", "a")), narrower_plans(plan("*", "a"))

    assert first is second


def test_narrowed_clients_are_asked_for_the_standard_metrics() -> None:
    metrics = client_metrics().values()

    selected = {each.name for each in metrics if each.name.startswith(OF_CLIENTS + OF_NODES)}
    of_nodes = {each.name for each in metrics if each.name.startswith(OF_NODES)}

    assert selected == {each.name for each in metrics if each.standard}
    assert of_nodes == {each.name for each in metrics if each.standard and {"node_id"} in each.levels}
