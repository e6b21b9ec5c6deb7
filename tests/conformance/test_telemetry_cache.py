"""The cache of client instances: expiry, eviction and closed connections."""

from __future__ import annotations

import random

from conformance.telemetry_broker import DATA, DEFAULT_PROPERTIES, TelemetryBroker, metrics_with
from odradek.telemetry.client_metrics_instance import NEVER_MS
from odradek.wire.error_code import ErrorCode

FAST = {"metrics": "*", "interval.ms": "100"}


def test_silent_instance_expires_after_three_intervals() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", FAST)
    told = broker.get()
    before = (
        broker.metric_count(),
        broker.metric("instance-count"),
        len(broker.connections),
        len(broker.clock.timer),
    )

    broker.clock.advance(300)

    assert before == (metrics_with(1), 1, 1, 1)
    assert broker.instance(told) is None
    assert (broker.metric_count(), broker.metric("instance-count")) == (metrics_with(0), 0)
    assert (len(broker.connections), len(broker.clock.timer)) == (0, 0)


def test_instance_lives_until_the_last_millisecond() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", FAST)
    told = broker.get()

    broker.clock.advance(299)

    assert broker.instance(told) is not None


def test_every_request_postpones_expiry_even_a_refused_one() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", FAST)
    told = broker.get()
    broker.clock.advance(50)
    refused = broker.get(told.client_instance_id)

    broker.clock.advance(299)

    assert refused.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert broker.instance(told) is not None
    broker.clock.advance(1)
    assert broker.instance(told) is None


def test_two_instances_expire() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", FAST)
    for _ in range(2):
        broker.get()
    before = (
        broker.metric_count(),
        broker.metric("instance-count"),
        len(broker.connections),
        len(broker.clock.timer),
    )

    broker.clock.advance(300)

    assert before == (19, 2, 2, 2)
    assert (broker.metric_count(), broker.metric("instance-count")) == (metrics_with(0), 0)
    assert (len(broker.connections), len(broker.clock.timer)) == (0, 0)


def test_changed_subscription_creates_an_instance_with_the_only_timer() -> None:
    broker = TelemetryBroker()
    first = broker.get(connection_id="conn-1")
    old = broker.known(first)
    broker.update("sub-1", DEFAULT_PROPERTIES)

    second = broker.get(first.client_instance_id, connection_id="conn-1")

    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert second.subscription_id != first.subscription_id
    assert broker.known(second) is not old
    assert old.expiry is None
    assert broker.known(second).expiry is not None
    assert (len(broker.clock.timer), broker.metric_count(), broker.metric("instance-count")) == (
        1,
        metrics_with(1),
        1,
    )
    assert broker.connections == {"conn-1": first.client_instance_id}


def test_new_instance_starts_unthrottled_and_keeps_its_attributes() -> None:
    broker = TelemetryBroker()
    told = broker.get()
    broker.push(told, terminating=True)
    attributes = broker.known(told).metadata
    broker.update("sub-1", DEFAULT_PROPERTIES)

    broker.get(told.client_instance_id)

    instance = broker.known(told)
    assert (instance.terminating, instance.last_push_ms, instance.last_known_error) == (
        False,
        NEVER_MS,
        ErrorCode.NONE,
    )
    assert instance.metadata is attributes
    assert broker.metric("plugin-export-count", told) == 1


def test_closing_a_connection_removes_its_instance() -> None:
    broker = TelemetryBroker()
    told = broker.get(connection_id="conn-1")

    broker.manager.connection_closed("conn-1")

    assert broker.instance(told) is None
    assert (broker.connections, len(broker.clock.timer)) == ({}, 0)
    assert (broker.metric_count(), broker.metric("instance-count")) == (metrics_with(0), 0)


def test_closing_another_connection_changes_nothing() -> None:
    broker = TelemetryBroker()
    told = broker.get(connection_id="conn-1")

    broker.manager.connection_closed("conn-2")

    assert broker.instance(told) is not None
    assert broker.connections == {"conn-1": told.client_instance_id}
    assert (broker.metric_count(), broker.metric("instance-count")) == (metrics_with(1), 1)


def test_second_connection_of_an_instance_is_not_tracked() -> None:
    broker = TelemetryBroker()
    told = broker.get(connection_id="conn-1")
    broker.push(told, DATA, connection_id="conn-2")

    broker.manager.connection_closed("conn-2")

    assert (list(broker.connections), broker.metric("instance-count")) == (["conn-1"], 1)


def test_close_leaves_nothing_behind() -> None:
    broker = TelemetryBroker(cache_size=1)
    for _ in range(2):
        broker.get()

    broker.manager.close()

    assert (broker.metric_count(), len(broker.clock.timer), broker.manager.instances()) == (0, 0, [])


def test_evicted_instance_keeps_its_metrics_until_its_timer() -> None:
    broker = TelemetryBroker()
    broker.update("sub-1", FAST)
    chance = random.Random(7)
    ids = [chance.randbytes(16) for _ in range(16_385)]
    first, second = broker.get(ids[0]), broker.get(ids[1])
    for client_instance_id in ids[2:16_384]:
        broker.get(client_instance_id)
    broker.push(first)

    broker.get(ids[16_384])

    assert broker.metric("instance-count") == 16_384
    assert (broker.instance(first) is not None, broker.instance(second)) == (True, None)
    assert broker.metric("plugin-export-count", second) == 0
    broker.clock.advance(300)
    assert (broker.metric_count(), broker.metric("instance-count"), len(broker.clock.timer)) == (
        metrics_with(0),
        0,
        0,
    )


def test_metrics_of_evicted_instances_are_bounded() -> None:
    broker = TelemetryBroker(cache_size=2)

    for _ in range(10):
        broker.get()

    assert (broker.metric("instance-count"), len(broker.clock.timer), broker.metric_count()) == (
        2,
        4,
        metrics_with(4),
    )


def test_returning_evicted_instance_lives_its_full_time() -> None:
    broker = TelemetryBroker(cache_size=1)
    broker.update("sub-1", FAST)
    told = broker.get()
    broker.get()
    broker.clock.advance(200)
    broker.get(told.client_instance_id)

    broker.clock.advance(299)

    assert broker.instance(told) is not None
    assert len(broker.clock.timer) == 1
