"""Bounds of memory, and forgetting of streams."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

from odradek.plugin import Origin
from odradek.temporality import Limits, Rejection
from support.delta_clients import A, B, Scene, Store, Way, counter, d, gauge, point, points_of

DAY = 24 * 3600


@pytest.fixture(params=["parsed", "layout"])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


def test_new_streams_above_the_limit_are_left_out_and_old_ones_continue(way: Way) -> None:
    scene = Scene(way, limits=Limits(max_streams=2))
    scene.push(d(1.0, 0, 60, n=1), d(1.0, 0, 60, n=2))

    sent = scene.push(d(1.0, 60, 120, n=1), d(1.0, 60, 120, n=2), d(1.0, 60, 120, n=3))

    assert [found.as_double for found in points_of(sent)] == [2, 2]
    assert scene.engine.counts.rejected_points == {Rejection.TOO_MANY_STREAMS: 1}


def test_one_client_has_a_limit_of_its_own(way: Way) -> None:
    scene = Scene(way, limits=Limits(max_client_streams=2))
    for number in range(5):
        scene.push(d(1.0, 0, 60, n=number))
    scene.push(d(1.0, 0, 60, n=7), instance=B)

    assert (len(scene.values()), len(scene.values(B))) == (2, 1)


def test_a_long_resource_takes_no_more_than_the_share_of_one_client() -> None:
    share, store = 1 << 20, Store()
    scene = Scene(limits=Limits(max_client_bytes=share))
    labels = {"client_id": "orders", "long": "v" * 100_000}
    for first in range(0, 60, 20):
        scene.push(
            *[counter(point(1.0, 0, 60), name=f"c{each}") for each in range(first, first + 20)], labels=labels
        )
    scene.push(d(1.0, 0, 60), instance=B)
    scene.push(counter(point(1.0, 60, 120), name="c0"), labels=labels, at=120)
    changes = scene.engine.take_changes()
    store.commit(changes)

    assert scene.engine.counts.rejected_points == {Rejection.TOO_MANY_STREAMS: 50}
    assert (len(scene.values()), scene.totals()["c0"], scene.totals(B)) == (10, 2, {"c": 1})
    assert sum(map(len, changes[0].shapes.values())) < 1.01 * share
    scene.restart(store)
    assert len(scene.values()) == 10


@pytest.mark.parametrize("number", [-(2**70), -1, 0, 2**40, 2**63, 2**70])
def test_no_number_in_a_record_stops_the_engine(way: Way, number: int) -> None:
    scene, store = Scene(way, keep_gauges=True), Store()
    for offset in range(3):
        record = scene.record(d(1.0, 60 * offset, 60 * offset + 60), gauge(1.0))
        record.context = replace(record.context, received_ms=number)
        record.push_interval_ms = number
        record.position = Origin("t", 0, offset)
        scene.engine.convert(record)
    store.commit(scene.engine.take_changes())

    scene.restart(store)

    assert scene.totals() == {"c": 3, "g": 1}


@pytest.mark.parametrize("time", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("temporality", [1, 2])
def test_no_time_of_a_point_stops_the_engine(way: Way, time: int, temporality: int) -> None:
    scene, store = Scene(way), Store()
    for start in (0, 1, time, 2**64 - 1):
        extreme = NumberDataPoint(start_time_unix_nano=start, time_unix_nano=time, as_double=2.0)
        scene.push(counter(extreme, temporality=temporality))
        extreme.as_double = 1.0
        scene.push(counter(extreme, temporality=temporality))
        scene.push(counter(extreme, temporality=3 - temporality))
    store.commit(scene.engine.take_changes())

    scene.restart(store)

    assert len(scene.series()) == 1


def test_clients_above_the_limit_of_memory_are_left_out() -> None:
    scene = Scene(limits=Limits(max_bytes=20_000))
    for number in range(200):
        scene.push(d(1.0, 0, 60), instance=bytes([number]) * 16)

    assert scene.engine.clients.held_bytes <= 20_000
    assert 5 < len(scene.engine.clients.states) < 30
    assert scene.engine.counts.rejected_points[Rejection.TOO_MANY_STREAMS] > 150


def test_a_stream_that_returns_after_a_day_beside_a_new_one_begins_again(way: Way) -> None:
    scene = Scene(way)
    scene.push(d(5.0, 0, 60, n=1), d(5.0, 0, 60, n=2))
    for second in range(3600, DAY + 7200, 3600):
        scene.push(d(1.0, second - 60, second, n=2), at=second)
    later = DAY + 7200

    scene.push(*(d(2.0, later - 60, later, n=n) for n in (1, 2, 3)), at=later)

    assert [value for _, value, _ in scene.values()] == [32, 2, 2]
    assert scene.engine.counts.forgotten_streams == 1


def test_the_account_of_memory_returns_to_its_start() -> None:
    scene = Scene(limits=Limits(max_layouts=3), keep_gauges=True)
    empty = scene.engine.held_bytes
    chance = random.Random(3)
    for number in range(300):
        metrics = [
            counter(point(1.0, number, number + 60, {"n": chance.randrange(9)}), name=f"c{n}")
            for n in range(chance.randrange(5))
        ]
        scene.push(*metrics, gauge(1.0), at=number, instance=bytes([chance.randrange(20)]) * 16)

    for instance_id in list(scene.engine.clients.states):
        scene.engine.clients.forget(instance_id)
    for layout in list(scene.engine.layouts.by_number.values()):
        scene.engine.layouts.remove(layout)

    assert scene.engine.held_bytes == empty
    scene.engine.take_changes()
    assert not scene.engine.keys.families.numbers
    assert not scene.engine.keys.attributes.numbers
    assert scene.engine.clients.streams == 0


def test_a_client_of_a_wrong_time_holds_up_no_other() -> None:
    scene = Scene()
    scene.push(d(1.0, 0, 60), at=100 * DAY, instance=A)
    scene.push(d(1.0, 0, 60), at=60, instance=B)
    later_ms = int((1_000_000 + 2 * DAY) * 1000)

    forgotten = [scene.engine.forget_silent(later_ms) for _ in range(2)]

    assert sum(forgotten) == 1
    assert list(scene.engine.clients.states) == [A]


def test_equal_clients_share_a_shape_of_streams(way: Way) -> None:
    scene = Scene(way)
    scene.push(d(1.0, 0, 60, n=1), d(1.0, 0, 60, n=2), instance=A)
    scene.push(d(1.0, 0, 60, n=1), d(1.0, 0, 60, n=2), instance=B)

    states = list(scene.engine.clients.states.values())

    assert states[0].shape is states[1].shape


def test_a_restored_engine_has_the_same_account(way: Way) -> None:
    scene, store = Scene(way), Store()
    for instance in (A, B):
        scene.push(d(1.0, 0, 60, n=1), d(1.0, 0, 60, n=2), instance=instance)
    store.commit(scene.engine.take_changes())
    held, streams = scene.engine.clients.held_bytes, scene.engine.clients.streams

    scene.restart(store)

    assert (scene.engine.clients.held_bytes, scene.engine.clients.streams) == (held, streams)


def test_random_layouts_of_equal_length_are_bounded() -> None:
    scene = Scene(limits=Limits(max_layouts=8))
    for number in range(50):
        scene.push(d(1.0, 0, 60, n=f"{number:03}"))

    assert len(scene.engine.layouts.by_number) <= 8
    assert len(scene.values()) == 50


def test_clients_with_layouts_of_their_own_and_equal_length_keep_them() -> None:
    scene = Scene()
    instances = [bytes([number]) * 16 for number in range(50)]
    for number, instance in enumerate(instances):
        scene.push(d(1.0, 0, 60, n=f"{number:03}"), instance=instance)
    learned = scene.engine.layouts.made

    for number, instance in enumerate(instances):
        scene.push(d(1.0, 60, 120, n=f"{number:03}"), instance=instance)

    assert (learned, scene.engine.layouts.made) == (50, 50)
