"""The metrics of lag as OTLP payloads."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.lag.group_lag import Granularity, GroupLag, PartitionLag, TopicEnds, TopicLag
from odradek.lag.report import (
    POINTS_OF_PAYLOAD,
    Point,
    cut,
    ended,
    group_instance,
    group_points,
    payloads,
    topic_end_points,
    topic_instance,
)
from odradek.lag.standing import Ends, standing

NOW_MS = 1_700_000_000_000
Series = dict[tuple[str, str], float | None]
"""Values by the metric's name and unit, and by its labels but the group; None for one that has ended."""


def partition(index: int, offset: int, ends: Ends, time_ms: int | None) -> PartitionLag:
    return PartitionLag(index, offset, standing(offset, ends), time_ms)


def group(**topics: TopicLag) -> GroupLag:
    return GroupLag(group="g", type="consumer", state="Stable", members=2, topics=topics)


BEHIND = group(
    orders=TopicLag(
        partitions=[
            partition(0, 40, Ends(0, 100, 90), 12_500),
            partition(1, 10, Ends(30, 100, 100), None),
            partition(2, 120, Ends(0, 100, 100), 0),
        ],
        uncommitted=1,
        assigned=4,
        offset_age_ms=3_000,
    )
)


def read(written: Iterable[bytes]) -> Series:
    """All points of some payloads."""
    found: Series = {}
    for each in written:
        (entry,) = MetricsData.FromString(each).resource_metrics
        (name,) = entry.resource.attributes
        assert (name.key, name.value.string_value) == ("cluster.name", "east")
        for metric in entry.scope_metrics[0].metrics:
            for point in metric.gauge.data_points:
                assert point.time_unix_nano == NOW_MS * 1_000_000
                labels = {pair.key: pair.value.string_value for pair in point.attributes}
                text = " ".join(f"{key}={value}" for key, value in labels.items() if key != "group")
                value = point.as_double if point.HasField("as_double") else point.as_int
                key = f"{metric.name} {metric.unit}", text
                assert key not in found
                found[key] = None if point.flags else value
    return found


def written(points: Iterable[Point], before: Iterable[Point] = ()) -> Series:
    points = list(points)
    return read([*payloads(points, NOW_MS, "east"), *payloads(ended(before, points), NOW_MS, "east")])


OF_GROUP: Series = {
    ("odradek.group.members {member}", ""): 2,
    ("odradek.group.state {group}", "state=Stable type=consumer"): 1,
    ("odradek.group.lag.sum {record}", ""): 130,
    ("odradek.group.lag.time.max s", ""): 12.5,
}
OF_TOPIC: Series = {
    ("odradek.group.uncommitted {partition}", "topic=orders"): 1,
    ("odradek.group.topic.assigned {partition}", "topic=orders"): 4,
    ("odradek.group.topic.lag.sum {record}", "topic=orders"): 130,
    ("odradek.group.topic.lag.time.max s", "topic=orders"): 12.5,
    ("odradek.group.offset.age s", "topic=orders"): 3,
}


def test_a_group_has_the_metrics_of_its_partitions_topics_and_itself() -> None:
    assert written(group_points(BEHIND)) == {
        **OF_GROUP,
        **OF_TOPIC,
        ("odradek.group.lag {record}", "topic=orders partition=0"): 60,
        ("odradek.group.offset {record}", "topic=orders partition=0"): 40,
        ("odradek.group.lag.time s", "topic=orders partition=0"): 12.5,
        ("odradek.group.lag.unstable {record}", "topic=orders partition=0"): 10,
        ("odradek.group.lag {record}", "topic=orders partition=1"): 70,
        ("odradek.group.offset {record}", "topic=orders partition=1"): 10,
        ("odradek.group.lost {record}", "topic=orders partition=1"): 20,
        ("odradek.group.lag {record}", "topic=orders partition=2"): 0,
        ("odradek.group.offset {record}", "topic=orders partition=2"): 120,
        ("odradek.group.lag.time s", "topic=orders partition=2"): 0,
        ("odradek.group.ahead {record}", "topic=orders partition=2"): 20,
    }


def test_sums_and_maxima_are_exact_at_each_granularity() -> None:
    assert written(group_points(BEHIND, Granularity.TOPIC)) == {**OF_GROUP, **OF_TOPIC}
    assert written(group_points(BEHIND, Granularity.GROUP)) == OF_GROUP


def test_a_group_that_never_committed_has_no_lag() -> None:
    """Neither 0 nor the end of the log: nobody knows where it would begin."""
    found = written(group_points(group(orders=TopicLag(uncommitted=4, assigned=4))))

    assert not [name for name, _ in found if "lag" in name or "offset" in name]
    assert found["odradek.group.uncommitted {partition}", "topic=orders"] == 4


def test_a_topic_that_the_members_left_still_has_its_lag() -> None:
    left = group(orders=TopicLag(partitions=[partition(0, 40, Ends(0, 100, 100), 5_000)]))

    found = written(group_points(left))

    assert found["odradek.group.topic.assigned {partition}", "topic=orders"] == 0
    assert found["odradek.group.lag {record}", "topic=orders partition=0"] == 60


def test_series_that_are_gone_end_once() -> None:
    after = group(others=BEHIND.topics["orders"])
    ended = {
        key for key, value in written(group_points(after), group_points(BEHIND)).items() if value is None
    }

    assert ended == {key for key in written(group_points(BEHIND)) if key[1].startswith("topic=orders")}
    assert None not in written(group_points(after), group_points(after)).values()


def test_the_ends_of_a_topic() -> None:
    assert written(topic_end_points(TopicEnds("orders", [(0, 5, 100), (1, 0, 0)]))) == {
        ("odradek.partition.end.offset {record}", "topic=orders partition=0"): 100,
        ("odradek.partition.start.offset {record}", "topic=orders partition=0"): 5,
        ("odradek.partition.end.offset {record}", "topic=orders partition=1"): 0,
        ("odradek.partition.start.offset {record}", "topic=orders partition=1"): 0,
    }


def test_ten_thousand_partitions_are_many_small_payloads() -> None:
    ends = Ends(0, 100, 100)
    wide = group(orders=TopicLag(partitions=[partition(index, 40, ends, 9) for index in range(10_000)]))
    sent = list(payloads(group_points(wide), NOW_MS, "east"))

    assert len(sent) == -(-30_008 // POINTS_OF_PAYLOAD)
    assert max(map(len, sent)) < 64 << 10
    assert len(read(sent)) == 30_008


def test_long_and_odd_names() -> None:
    assert cut("é" * 600) == "é" * 512
    assert cut("plain") == "plain"
    odd = GroupLag(group='a"\n\udcff', type="classic", state="Empty", members=0, topics={})
    assert len(written(group_points(odd))) == 2


def test_who_reports_on_a_group_does_not_change_its_instance() -> None:
    assert group_instance("c", "g") == group_instance("c", "g")
    assert len({group_instance("c", "g"), group_instance("d", "g"), topic_instance("c", "g")}) == 3
    assert len(group_instance("c", "g")) == 16
