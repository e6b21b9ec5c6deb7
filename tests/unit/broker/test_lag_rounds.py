"""What is written about lag, how often, and how much of it."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from odradek.broker import lag_rounds
from odradek.broker.lag_rounds import POINTS_PER_S, REWRITE_MS, TIME_ERROR
from odradek.lag.group_lag import Granularity, GroupLag, PartitionLag, TopicLag
from odradek.lag.report import POINTS_OF_PAYLOAD, group_instance, group_points, payloads
from odradek.lag.standing import Ends, standing
from odradek.topic.telemetry_topic import decode_record, encode_headers, record_key
from odradek.wire.compression import Codec, compress
from support.lag_scene import LagScene

OF_TWO_GROUPS = 6
"""Partitions of each of two groups."""


def two_groups(**settings: Any) -> LagScene:
    """Groups `large`, with a lag in six partitions, and `small`, with one in a single partition."""
    scene = LagScene(**settings)
    scene.broker.topics.create("wide", OF_TWO_GROUPS, {})
    for index in range(OF_TWO_GROUPS):
        scene.write(3, topic="wide", index=index)
        scene.commit(1, "large", topic="wide", index=index)
    scene.commit(1, "small", topic="wide")
    return scene


def test_a_record_is_of_the_source_lag_and_readable_by_all() -> None:
    scene = LagScene(cluster_name="east")
    scene.commit(0)
    scene.round()

    (record, of_topic) = scene.records
    read = decode_record(
        record_key(record.payload.client_instance_id), record.payload.data, encode_headers(record)
    )
    assert (read.source, read.observed, read.labeled) == ("lag", False, True)
    assert read.push_interval_ms == REWRITE_MS
    assert read.payload.client_instance_id == group_instance("c", "g")
    assert of_topic.payload.client_instance_id != read.payload.client_instance_id
    assert b"east" in read.payload.data


def test_what_did_not_move_is_written_again_after_five_minutes() -> None:
    scene = LagScene()
    scene.write(5)
    scene.commit(5)
    scene.round()
    first = len(scene.records)
    scene.round(REWRITE_MS // 30_000 - 1)
    assert len(scene.records) == first
    scene.round(2)
    assert len(scene.records) == 2 * first


def test_what_moved_is_written_in_the_next_round() -> None:
    scene = LagScene()
    scene.commit(0, "idle")
    scene.round()
    scene.records.clear()
    scene.commit(0, "new")
    scene.round()

    assert {each.payload.client_instance_id for each in scene.records} == {group_instance("c", "new")}


def test_a_group_that_stands_still_is_written_before_its_seconds_are_a_tenth_off() -> None:
    scene = LagScene()
    scene.write(5)
    scene.commit(0)
    written_at = []
    for _ in range(240):
        known = len(scene.records)
        scene.round()
        now_s = scene.clock.now_ms() / 1_000
        if group_instance("c", "g") in {each.payload.client_instance_id for each in scene.records[known:]}:
            written_at.append(now_s)
        shown_s = scene.of()["lag.time"]
        true_s = shown_s + now_s - written_at[-1]
        assert true_s - shown_s <= true_s * TIME_ERROR + 1

    gaps_s = [after - before for before, after in pairwise(written_at)]
    assert min(gaps_s) < 35
    assert max(gaps_s) >= REWRITE_MS / 1_000
    assert len(written_at) < 60


def test_a_round_that_writes_much_is_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_rounds, "POINTS_PER_S", 1)
    scene = two_groups()
    written, started_ms, hours_ms = 0, scene.clock.now_ms(), 7_200_000
    while scene.clock.now_ms() - started_ms < hours_ms:
        scene.write(topic="wide")
        scene.round()
        written += scene.rounds.written_points

    assert written == pytest.approx(hours_ms / 1_000, rel=0.05)


def test_the_topic_grows_by_two_gigabytes_a_day_at_most() -> None:
    random = Random(1)
    partitions = []
    for index in range(1_000):
        end, lag = random.randrange(10**6, 10**9), random.randrange(1, 10**4)
        place = standing(end - lag, Ends(0, end, end))
        partitions.append(PartitionLag(index, end - lag, place, random.randrange(10**5)))
    group = GroupLag(
        group="g", type="classic", state="Stable", members=9, topics={"t": TopicLag(partitions=partitions)}
    )
    points = list(group_points(group))

    stored = sum([len(compress(Codec.ZSTD, data)) for data in payloads(points, 1_700_000_000_000, "c")])

    assert stored / len(points) * POINTS_PER_S * 86_400 <= 2 * 10**9


def test_the_largest_group_falls_back_and_its_sums_stay_exact() -> None:
    scene = two_groups(max_series=30)
    scene.round()

    assert not scene.of("large", "wide", "0")
    assert scene.of("large", "wide")["topic.lag.sum"] == 12
    assert scene.of("small", "wide", "0")["lag"] == 2
    assert scene.rounds.left_out["budget"] == 24


@pytest.mark.parametrize(
    ("granularity", "partition", "topic"),
    [
        (Granularity.PARTITION, True, True),
        (Granularity.TOPIC, False, True),
        (Granularity.GROUP, False, False),
    ],
)
def test_the_finest_series(granularity: Granularity, partition: bool, topic: bool) -> None:
    scene = two_groups(granularity=granularity)
    scene.round()

    assert bool(scene.of("large", "wide", "0")) is partition
    assert bool(scene.of("large", "wide")) is topic
    assert scene.series["group.lag.sum"]["large",] == 12
    assert scene.rounds.series == sum(map(len, scene.series.values()))


def test_an_empty_group_that_does_not_commit_keeps_its_sum_only() -> None:
    scene = two_groups(idle_groups_ms=100_000)
    scene.round(2)
    assert scene.of("large", "wide", "0")
    scene.round(2)

    assert not scene.of("large", "wide", "0")
    assert scene.series["group.lag.sum"]["large",] == 12
    scene.commit(2, "large", topic="wide")
    scene.round()
    assert scene.of("large", "wide", "0")["lag"] == 1


def test_groups_and_topics_are_chosen_by_their_whole_names() -> None:
    scene = two_groups(groups="sm.*|larg", topics="wid|t")
    scene.commit(0, "small")
    scene.round()

    assert {place[0] for place in scene.series["group.state"]} == {"small"}
    assert set(scene.series["group.lag"]) == {("small", "t", "0")}
    assert set(scene.series["partition.end.offset"]) == {("t", "0")}


def test_a_group_in_which_the_host_consumes_is_left_out() -> None:
    """Each record about it would move it."""
    scene = LagScene()
    scene.commit(0, "odradek.forwarder.x")
    scene.broker.groups.offsets.owned["odradek.forwarder.x"] = lambda _offsets: None
    scene.round()

    assert "group.state" not in scene.series


def test_nothing_is_written_after_the_stop() -> None:
    scene = LagScene()
    scene.commit(0)
    others = len(scene.clock.timer) - 2
    scene.rounds.stop()
    scene.clock.advance(120_000)

    assert scene.records == []
    assert len(scene.clock.timer) == others


def test_between_rounds_there_is_no_task() -> None:
    """The garbage collector waits for a moment without tasks."""
    scene = LagScene()
    scene.commit(0)
    scene.round()

    assert not scene.broker.steps.tasks


def test_a_round_that_fails_is_counted_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    scene = LagScene()
    scene.commit(0)
    keep, scene.source.keep = scene.source.keep, lambda _record: bool(1 // 0)
    scene.clock.advance(45_000)
    scene.source.keep = keep
    scene.round()

    assert scene.rounds.rounds == {"failed": 1, "completed": 1}
    assert caplog.messages == ["upkeep failed"]
    assert scene.of()["lag"] == 0


def test_a_record_that_finds_no_room_is_lost_and_counted() -> None:
    scene = LagScene()
    scene.source.keep = lambda _record: False
    scene.commit(0)
    scene.round()

    assert sum(scene.source.accounts.rejected.values()) == 2
    assert scene.source.accounts.waiting == 0


def test_many_partitions_are_measured_in_short_steps() -> None:
    """Each step is some partitions, or one payload."""
    scene = LagScene(max_series=1_000_000)
    names = [f"t{number}" for number in range(10)]
    offsets: dict[tuple[bytes, int], object] = {}
    for name in names:
        scene.broker.topics.create(name, 20, {})
        for index in range(20):
            scene.commit(0, topic=name, index=index)
            offsets[name.encode(), index] = None
    steps = list(scene.rounds.round())

    assert set(steps) == {None}
    assert len(steps) >= len(offsets) // 50 + 3 * len(offsets) // POINTS_OF_PAYLOAD
    assert len(scene.series["group.lag"]) == len(offsets)


def test_the_figures_of_the_rounds() -> None:
    scene = LagScene()
    scene.commit(0)
    scene.round()
    scene.clock.advance(7_000)
    rows = {(row.name, *row.attributes.values()): row.value for row in scene.rounds.metric_rows()}

    assert rows["odradek.lag.rounds", "completed"] == 1
    assert rows["odradek.lag.round.age",] == pytest.approx(7, abs=0.5)
    assert rows["odradek.lag.series",] == sum(map(len, scene.series.values()))
    assert rows["odradek.lag.series.left.out", "age"] == 0
