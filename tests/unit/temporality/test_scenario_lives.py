"""The scenarios about the lives of clients, records, hosts and logs."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp import NotOtlp
from support.delta_clients import (
    B,
    Scene,
    Store,
    Way,
    counter,
    d,
    gauge,
    metrics_data,
    point,
    points_of,
)

WAYS: list[Way] = ["parsed", "layout"]
LABELS = {"client_id": "orders", "group_id": "g"}
HOUR = 3600


@pytest.fixture(params=WAYS)
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param)


def test_row_10_a_record_that_comes_twice_is_added_once(scene: Scene) -> None:
    first = scene.push(d(5.0, 0, 60), offset=0)
    again = scene.push(d(5.0, 0, 60), offset=0)

    assert scene.totals() == {"c": 5}
    assert [found.as_double for found in points_of(first) + points_of(again)] == [5, 5]
    assert scene.engine.counts.repeated_records == 1


def test_row_11_equal_bytes_at_two_offsets_are_added_twice(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60), offset=0)
    scene.push(d(5.0, 0, 60), offset=1)

    assert scene.totals() == {"c": 10}


def test_row_12_a_stream_twice_in_a_push_is_added_twice_and_sent_once(scene: Scene) -> None:
    sent = scene.push(d(2.0, 0, 60), d(3.0, 0, 60))

    assert scene.totals() == {"c": 5}
    assert [found.as_double for found in points_of(sent)] == [5]
    assert scene.engine.counts.duplicates_in_push == 1


def test_row_28_a_silent_client_ends(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))

    assert [scene.totals(at=second) for second in (215, 216)] == [{"c": 5}, {}]


def test_row_29_a_client_that_comes_in_time_has_not_ended(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    shown = scene.totals(at=214)

    scene.push(d(1.0, 60, 214), at=214)

    assert (shown, scene.totals(at=214)) == ({"c": 5}, {"c": 6})


def test_row_30_a_client_that_returns_goes_on(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    ended = scene.totals(at=216)

    scene.push(d(7.0, 60, HOUR + 60), at=HOUR + 60)

    assert ended == {}
    assert scene.values(at=HOUR + 60) == [("c", 12, 0)]
    assert scene.engine.counts.epochs == 0


@pytest.mark.parametrize("swept", [False, True])
def test_row_31_after_a_day_the_total_is_forgotten(scene: Scene, swept: bool) -> None:
    scene.push(d(5.0, 0, 60))
    later = 25 * HOUR
    if swept:
        scene.engine.forget_silent((1_000_000 + later) * 1000)

    scene.push(d(7.0, 60, later), at=later)

    assert scene.values() == [("c", 7, 60)]
    assert scene.engine.counts.forgotten_clients == 1


def test_row_32_a_goodbye_is_added_and_stays_for_some_scrapes(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    scene.push(d(2.0, 60, 75), at=75, terminating=True)

    shown = [scene.totals(at=second) for second in (75, 375, 376)]
    forgotten = scene.engine.forget_silent((1_000_000 + 376) * 1000)

    assert shown == [{"c": 7}, {"c": 7}, {}]
    assert (forgotten, scene.totals()) == (1, {})


def test_row_33_an_empty_goodbye_changes_no_value(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    scene.push(at=75, terminating=True)

    assert scene.totals(at=80) == {"c": 5}
    assert [client.closed for client in scene.engine.clients.states.values()] == [True]


def test_row_34_a_record_after_the_goodbye_opens_the_client_again(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60), terminating=True)
    scene.push(d(1.0, 60, 120), at=120)

    assert scene.totals(at=270) == {"c": 6}
    assert [client.closed for client in scene.engine.clients.states.values()] == [False]


def test_rows_35_and_36_a_restarted_client_is_another_instance(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    scene.push(d(3.0, 100, 160), at=160, instance=B)

    assert (scene.values(), scene.values(B)) == ([("c", 5, 0)], [("c", 3, 100)])


@pytest.mark.parametrize(
    ("row", "before", "after"),
    [
        ("37", LABELS, LABELS | {"group_member_id": "m"}),
        ("38", LABELS | {"member_id": "m"}, LABELS),
        (
            "39",
            LABELS | {"client_source_port": "1", "broker_node_id": "1"},
            LABELS | {"client_source_port": "2"},
        ),
        ("40", LABELS | {"principal": "User:a"}, LABELS | {"principal": "User:b"}),
    ],
)
def test_labels_that_change_make_no_new_stream(
    scene: Scene, row: str, before: dict[str, str], after: dict[str, str]
) -> None:
    scene.push(d(5.0, 0, 60), labels=before)
    scene.push(d(3.0, 60, 120), labels=after)

    assert scene.values() == [("c", 8, 0)]


def test_another_attribute_of_the_resource_makes_a_stream_of_its_own(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60), labels=LABELS | {"tenant": "a"})
    scene.push(d(3.0, 60, 120), labels=LABELS | {"tenant": "b"})

    assert scene.values() == [("c", 5, 0), ("c", 3, 60)]


def test_static_labels_of_the_host_are_no_identity() -> None:
    scene = Scene(static_labels=["tenant"])
    scene.push(d(5.0, 0, 60), labels=LABELS | {"tenant": "a"})
    scene.push(d(3.0, 60, 120), labels=LABELS | {"tenant": "b"})

    assert scene.values() == [("c", 8, 0)]


def test_rows_42_and_44_what_a_client_has_lost_is_only_a_lower_total(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    scene.push(gauge(1.0), at=120)
    scene.push(d(2.0, 600, 660), at=660)

    assert scene.values() == [("c", 7, 0)]


def test_row_47_many_resource_metrics_are_one_push() -> None:
    one, many = Scene(), Scene()
    metrics = [counter(point(float(n), 0, 60), name=f"c{n}") for n in range(20)]
    apart = MetricsData()
    for metric in metrics:
        apart.resource_metrics.extend(metrics_data([metric], LABELS).resource_metrics)

    one.push(*metrics, labels=LABELS)
    many.push(data=apart.SerializeToString())

    assert one.values() == many.values()


def test_row_48_the_order_of_attributes_does_not_matter(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60, a="1", b="2"))
    scene.push(d(3.0, 60, 120, b="2", a="1"))

    assert scene.totals() == {"c": 8}


def test_row_49_a_text_and_a_number_differ(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60, node_id="1"))
    scene.push(d(3.0, 60, 120, node_id=1))

    assert scene.values() == [("c", 5, 0), ("c", 3, 60)]


def test_row_56_no_recorded_value_ends_a_stream_and_keeps_its_total(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60))
    ended = point(None, 60, 120)
    ended.flags = 1
    scene.push(counter(ended), at=120)
    shown = scene.totals(at=120)

    scene.push(d(1.0, 120, 180), at=180)

    assert (shown, scene.totals(at=180)) == ({}, {"c": 6})


@pytest.mark.parametrize("damage", ["not otlp", "cut"])
def test_row_58_a_damaged_record_is_refused_and_its_neighbors_are_added(scene: Scene, damage: str) -> None:
    good = scene.record(d(5.0, 0, 60)).payload.data
    scene.push(d(5.0, 0, 60))

    with pytest.raises(NotOtlp):
        scene.push(data=b"\xff\xff not OTLP" if damage == "not otlp" else good[:-3], offset=1)
    scene.push(d(3.0, 60, 120), offset=2)

    assert scene.totals() == {"c": 8}
    assert scene.engine.counts.lost_records == 0


def test_row_59_the_good_points_of_a_push_are_added(scene: Scene) -> None:
    good = [counter(point(1.0, 0, 60), name=f"c{n}") for n in range(10)]

    sent = scene.push(*good, d(-1.0, 0, 60))

    assert len(scene.values()) == len(points_of(sent)) == 10
    assert sum(scene.engine.counts.rejected_points.values()) == 1


def test_row_60_records_that_the_log_has_deleted_are_counted(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60), offset=99)
    scene.push(d(2.0, 1320, 1380), offset=121)

    assert scene.values() == [("c", 7, 0)]
    assert (scene.engine.counts.lost_records, scene.engine.counts.gaps) == (21, 1)


def test_row_61_a_new_topic_begins_at_0_and_the_totals_stay(scene: Scene) -> None:
    scene.push(d(5.0, 0, 60), offset=1000)
    scene.push(d(2.0, 60, 120), topic="topic-2", offset=0)

    assert scene.totals() == {"c": 7}
    assert scene.engine.counts.lost_records == 0


def test_row_62_what_was_committed_is_sent_again_after_a_kill(scene: Scene) -> None:
    store = Store()
    scene.push(d(5.0, 0, 60))
    scene.push(d(3.0, 60, 120))
    store.commit(scene.engine.take_changes())

    scene.restart(store)
    again = scene.push(d(3.0, 60, 120), offset=1)
    after = scene.push(d(1.0, 120, 180), offset=2)

    assert [found.as_double for found in points_of(again) + points_of(after)] == [8, 9]
    assert scene.values() == [("c", 9, 0)]


def test_row_63_a_replay_changes_no_total(scene: Scene) -> None:
    for index in range(5):
        scene.push(d(2.0, 60 * index, 60 * index + 60), offset=index)

    sent = [scene.push(d(2.0, 60 * n, 60 * n + 60), offset=n) for n in range(5)]

    assert scene.totals() == {"c": 10}
    assert [points_of(each)[0].as_double for each in sent] == [10] * 5
    assert scene.engine.counts.repeated_records == 5


def test_row_64_without_a_commit_the_totals_are_those_of_the_last_one(scene: Scene) -> None:
    store = Store()
    scene.push(d(5.0, 0, 60))
    store.commit(scene.engine.take_changes())
    scene.push(d(3.0, 60, 120))

    scene.restart(store)

    assert scene.totals() == {"c": 5}


def test_row_65_records_of_more_partitions_are_added_alike() -> None:
    few, many = Scene(), Scene()
    for index in range(10):
        few.push(d(1.0, 60 * index, 60 * index + 60))
        many.push(d(1.0, 60 * index, 60 * index + 60), topic=f"t{index}", offset=index)

    assert few.values() == many.values()
