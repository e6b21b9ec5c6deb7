"""Scenarios C1 to C7 (instance cache, expiry, connections)."""

from __future__ import annotations

import random

from conformance.telemetry_world import DATA, DEFAULT_PROPERTIES, World
from odradek.wire.error_code import ErrorCode

FAST = {"metrics": "*", "interval.ms": "100"}


def test_C1_silent_instance_expires_after_three_intervals() -> None:
    world = World()
    world.update("sub-1", FAST)
    told = world.get()
    before = (
        world.metric_count(),
        world.metric("instance-count"),
        len(world.connections),
        len(world.clock.timer),
    )

    world.clock.advance(300)

    assert before == (11, 1, 1, 1)
    assert world.instance(told) is None
    assert (world.metric_count(), world.metric("instance-count")) == (3, 0)
    assert (len(world.connections), len(world.clock.timer)) == (0, 0)


def test_C1_instance_lives_until_the_last_millisecond() -> None:
    world = World()
    world.update("sub-1", FAST)
    told = world.get()

    world.clock.advance(299)

    assert world.instance(told) is not None


def test_C1_every_request_puts_expiry_off_even_a_refused_one() -> None:
    world = World()
    world.update("sub-1", FAST)
    told = world.get()
    world.clock.advance(50)
    refused = world.get(told.client_instance_id)

    world.clock.advance(299)

    assert refused.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert world.instance(told) is not None
    world.clock.advance(1)
    assert world.instance(told) is None


def test_C2_two_instances_expire() -> None:
    world = World()
    world.update("sub-1", FAST)
    for _ in range(2):
        world.get()
    before = (
        world.metric_count(),
        world.metric("instance-count"),
        len(world.connections),
        len(world.clock.timer),
    )

    world.clock.advance(300)

    assert before == (19, 2, 2, 2)
    assert (world.metric_count(), world.metric("instance-count")) == (3, 0)
    assert (len(world.connections), len(world.clock.timer)) == (0, 0)


def test_C3_changed_subscription_makes_a_new_instance_with_the_only_timer() -> None:
    world = World()
    first = world.get(connection_id="conn-1")
    old = world.known(first)
    world.update("sub-1", DEFAULT_PROPERTIES)

    second = world.get(first.client_instance_id, connection_id="conn-1")

    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert second.subscription_id != first.subscription_id
    assert world.known(second) is not old
    assert old.expiry is None
    assert world.known(second).expiry is not None
    assert (len(world.clock.timer), world.metric_count(), world.metric("instance-count")) == (1, 11, 1)
    assert world.connections == {"conn-1": first.client_instance_id}


def test_C3_new_instance_begins_with_open_gates_and_keeps_its_attributes() -> None:
    world = World()
    told = world.get()
    world.push(told, terminating=True)
    attributes = world.known(told).metadata
    world.update("sub-1", DEFAULT_PROPERTIES)

    world.get(told.client_instance_id)

    instance = world.known(told)
    assert (instance.terminating, instance.last_push_ms, instance.last_known_error) == (
        False,
        0,
        ErrorCode.NONE,
    )
    assert instance.metadata is attributes
    assert world.metric("plugin-export-count", told) == 1


def test_C4_closed_connection_takes_its_instance_along() -> None:
    world = World()
    told = world.get(connection_id="conn-1")

    world.manager.connection_closed("conn-1")

    assert world.instance(told) is None
    assert (world.connections, len(world.clock.timer)) == ({}, 0)
    assert (world.metric_count(), world.metric("instance-count")) == (3, 0)


def test_C5_closing_another_connection_changes_nothing() -> None:
    world = World()
    told = world.get(connection_id="conn-1")

    world.manager.connection_closed("conn-2")

    assert world.instance(told) is not None
    assert world.connections == {"conn-1": told.client_instance_id}
    assert (world.metric_count(), world.metric("instance-count")) == (11, 1)


def test_C5_second_connection_of_an_instance_is_not_remembered() -> None:
    world = World()
    told = world.get(connection_id="conn-1")
    world.push(told, DATA, connection_id="conn-2")

    world.manager.connection_closed("conn-2")

    assert (list(world.connections), world.metric("instance-count")) == (["conn-1"], 1)


def test_C6_close_leaves_nothing_behind() -> None:
    world = World(cache_size=1)
    for _ in range(2):
        world.get()

    world.manager.close()

    assert (world.metric_count(), len(world.clock.timer), world.manager.instances()) == (0, 0, [])


def test_C7_least_recently_used_instance_goes_and_its_metrics_stay_until_its_timer() -> None:
    world = World()
    world.update("sub-1", FAST)
    chance = random.Random(7)
    ids = [chance.randbytes(16) for _ in range(16_385)]
    first, second = world.get(ids[0]), world.get(ids[1])
    for client_instance_id in ids[2:16_384]:
        world.get(client_instance_id)
    world.push(first)

    world.get(ids[16_384])

    assert world.metric("instance-count") == 16_384
    assert (world.instance(first) is not None, world.instance(second)) == (True, None)
    assert world.metric("plugin-export-count", second) == 0
    world.clock.advance(300)
    assert (world.metric_count(), world.metric("instance-count"), len(world.clock.timer)) == (3, 0, 0)


def test_C7_metrics_of_evicted_instances_are_bounded() -> None:
    world = World(cache_size=2)

    for _ in range(10):
        world.get()

    assert (world.metric("instance-count"), len(world.clock.timer), world.metric_count()) == (2, 4, 3 + 4 * 8)


def test_C7_evicted_instance_that_comes_back_lives_its_full_time() -> None:
    world = World(cache_size=1)
    world.update("sub-1", FAST)
    told = world.get()
    world.get()
    world.clock.advance(200)
    world.get(told.client_instance_id)

    world.clock.advance(299)

    assert world.instance(told) is not None
    assert len(world.clock.timer) == 1
