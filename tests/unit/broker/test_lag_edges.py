"""The right answer for each kind of group, topic and offset, on a host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odradek.group.classic_group import ClassicGroup
from odradek.group.embedded_protocol import assignment_bytes
from odradek.group.offset_expiration import OffsetExpiration
from odradek.log.cleanable import cleanable
from odradek.log.cleaner import Cleaner
from odradek.waiting.steps import run_steps
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.broker import make_broker
from support.lag_scene import LagScene


@pytest.fixture
def scene() -> LagScene:
    return LagScene()


def test_behind_in_records_and_in_seconds(scene: LagScene) -> None:
    """The age is that of the append: what the producer wrote as timestamp does not matter."""
    scene.commit(0)
    scene.round()
    scene.write(10, stamp_ms=1_000)
    scene.commit(4)
    scene.round()

    found = scene.of()

    assert (found["lag"], found["offset"]) == (6, 4)
    assert found["lag.time"] == pytest.approx(30, abs=2.5)
    scene.round(2)
    assert scene.of()["lag.time"] == pytest.approx(90, abs=2.5)
    assert scene.of("g", "t")["offset.age"] == pytest.approx(90, abs=1)


def test_fully_read_has_no_lag_in_time_however_old_the_last_record(scene: LagScene) -> None:
    scene.write(5)
    scene.commit(5)
    scene.round(3)

    assert scene.of() == {"lag": 0, "lag.time": 0, "offset": 5}
    assert "offset.age" not in scene.of("g", "t")


def test_never_committed_has_no_lag_but_uncommitted_partitions(scene: LagScene) -> None:
    scene.write(5)
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for _ in range(2):  # the first one may be answered before the assignment is computed
        answer = scene.client.send(joining)
        assert not answer.error_code
        joining = replace(joining, member_epoch=answer.member_epoch)
        scene.clock.advance(5_000)
    scene.round()

    assert scene.of() == {}
    assert scene.of("g", "t") == {"topic.assigned": 1, "uncommitted": 1}
    assert scene.of("g", "Stable", "consumer") == {"state": 1}
    scene.commit(2)
    scene.round()
    assert scene.of("g", "t")["uncommitted"] == 0
    assert scene.of()["lag"] == 3


def test_a_classic_member_and_what_it_left(scene: LagScene) -> None:
    """The lag of a topic that nobody reads any more goes on; that nobody reads it is said."""
    scene.broker.topics.create("left", 1, {})
    scene.write(3, topic="left")
    for name in ("t", "left"):
        scene.commit(0, topic=name)
    (member,) = scene.client.stable_group()
    group = scene.broker.groups.groups["g"]
    assert isinstance(group, ClassicGroup)
    reads = assignment_bytes(scene.broker.groups.topics, [(scene.broker.topics.by_name["t"].id, 0)])
    group.members[member.member_id].assignment = reads
    session = group.members[member.member_id].session
    assert session is not None
    session.postpone(scene.clock.monotonic_ms() + 60_000)
    scene.round()

    assert scene.of("g", "t")["topic.assigned"] == 1
    assert scene.of("g", "left")["topic.assigned"] == 0
    assert scene.of("g", "left", "0")["lag"] == 3
    assert scene.of("g", "Stable", "classic") == {"state": 1}
    reader = group.members[member.member_id]
    place = (member.member_id, reader.client_id, reader.client_host.removeprefix("/"), "t", "0")
    assert scene.of("g", *place) == {"member": 1}


def test_the_time_until_a_lag_is_gone_and_until_records_are_lost(scene: LagScene) -> None:
    scene.broker.topics.create("short", 1, {"retention.ms": "600000"})
    scene.broker.topics.create("kept", 1, {"cleanup.policy": "compact"})
    for name in ("short", "kept"):
        scene.write(100, topic=name)
        scene.commit(9, topic=name)
    scene.round()
    scene.commit(10, topic="kept")
    for offset in (10, 40, 70):
        scene.commit(offset, topic="short")
        scene.round()

    short, kept = scene.of("g", "short"), scene.of("g", "kept")
    assert short["lag.rate"] == pytest.approx(-1, rel=0.05)
    assert short["catch.up.time"] == pytest.approx(30, rel=0.05)
    assert scene.of("g", "short", "catching up") == scene.of("g", "kept", "stalled") == {"progress": 1}
    assert short["retention.share"] == pytest.approx(short["topic.lag.time.max"] / 600)
    assert short["retention.left"] == 600 - short["topic.lag.time.max"]
    assert not {"catch.up.time", "retention.share", "retention.left"} & kept.keys()


def test_past_the_end(scene: LagScene) -> None:
    scene.write(5)
    scene.commit(50)
    scene.round()

    assert scene.of() == {"ahead": 45, "lag": 0, "lag.time": 0, "offset": 50}


def test_below_the_log_start(scene: LagScene) -> None:
    scene.write(10)
    scene.commit(2)
    scene.log().delete_records(6)
    scene.round()

    found = scene.of()
    assert (found["lag"], found["lost"], found["offset"]) == (4, 4, 2)
    scene.commit(10)
    scene.round()
    assert scene.of() == {"lag": 0, "lag.time": 0, "offset": 10}


def test_a_marker_after_the_last_record_is_no_lag_once_nothing_moves(scene: LagScene) -> None:
    """A consumer that commits the offset after its last record: the marker stays beyond it for ever."""
    scene.write_in_transaction(10)
    scene.end_transaction()
    scene.commit(10)
    scene.round(2)

    assert scene.of() == {"lag": 0, "lag.time": 0, "offset": 10}
    scene.write()
    scene.round(2)
    assert scene.of()["lag"] == 2
    assert scene.of()["lag.time"] == pytest.approx(60, abs=2.5)


def test_an_aborted_tail_is_lag(scene: LagScene) -> None:
    scene.write(2)
    scene.write_in_transaction(3)
    scene.end_transaction(committed=False)
    scene.commit(2)
    scene.round(3)

    assert scene.of()["lag"] == 4


def test_an_open_transaction_is_unstable(scene: LagScene) -> None:
    scene.write(4)
    scene.write_in_transaction(3)
    scene.commit(2)
    scene.round()

    assert scene.of()["lag"] == 5
    assert scene.of()["lag.unstable"] == 3
    scene.end_transaction()
    scene.round()
    assert "lag.unstable" not in scene.of()


def test_a_deleted_topic_ends_with_the_next_round(scene: LagScene) -> None:
    scene.broker.topics.create("other", 1, {})
    scene.write(5)
    scene.commit(0)
    scene.commit(0, topic="other")
    scene.round()
    topics = scene.broker.topics
    topics.delete(topics.by_name["t"])
    scene.round()

    assert scene.of() == {}
    assert scene.of("g", "t") == {}
    assert scene.of("g", "other", "0")["lag"] == 0
    assert ("t", "0") not in scene.series["partition.end.offset"]


def test_a_compacted_topic_is_counted_by_offsets(scene: LagScene) -> None:
    """As Apache Kafka counts it: an upper bound of the records that are left."""
    config = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0"}
    scene.broker.topics.create("compacted", 1, config)
    scene.commit(0, topic="compacted")
    scene.round()
    scene.write(90, topic="compacted")
    log = scene.log("compacted")
    log.roll(scene.clock.now_ms())
    scene.write(10, topic="compacted")
    run_steps(Cleaner(cleanable(log, scene.clock.now_ms()), scene.clock.now_ms(), 1 << 20).steps())
    scene.commit(50, topic="compacted")
    scene.round()

    batch = log.data_batch(50, 100)
    assert batch is not None
    assert batch.record_count == 1
    assert scene.of("g", "compacted", "0")["lag"] == 50
    assert scene.of("g", "compacted", "0")["lag.time"] == pytest.approx(30, abs=2.5)


def test_an_expired_offset_is_no_offset(scene: LagScene) -> None:
    scene.write(5)
    OffsetExpiration(scene.broker.groups).start()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    scene.client.send(OffsetCommitRequest(group_id="g", retention_time_ms=60_000, topics=topics), 4)
    scene.round()
    assert scene.of()["lag"] == 3
    scene.clock.advance(scene.broker.groups.config.offsets_retention_check_interval_ms + 60_000)
    scene.round()

    assert scene.of() == {}
    assert scene.of("g", "t") == {}


def test_a_topic_made_again_begins_anew(scene: LagScene) -> None:
    scene.write(5)
    scene.commit(0)
    scene.round()
    topics = scene.broker.topics
    topics.delete(topics.by_name["t"])
    topics.create("t", 1, {})
    scene.write(3)
    scene.commit(1)
    scene.round()

    assert scene.of()["lag"] == 2
    assert scene.of()["lag.time"] <= 32


def test_added_partitions_are_counted_once_they_are_committed(scene: LagScene) -> None:
    topics = scene.broker.topics
    topics.create("two", 2, {})
    scene.write(5, topic="two", index=1)
    scene.commit(0, topic="two")
    scene.round()
    assert scene.of("g", "two", "1") == {}
    scene.commit(2, topic="two", index=1)
    scene.round()

    assert scene.of("g", "two", "1")["lag"] == 3
    assert scene.of("g", "two")["topic.lag.sum"] == 3


def test_reset_backwards_shows_the_age_of_older_records(scene: LagScene) -> None:
    scene.commit(0)
    scene.round()
    scene.write(5)
    scene.round()
    scene.write(5)
    scene.commit(10)
    scene.round()
    assert scene.of()["lag.time"] == 0
    scene.commit(0)
    scene.round()

    assert scene.of()["lag"] == 10
    assert scene.of()["lag.time"] == pytest.approx(90, abs=9)


def test_a_deleted_group_ends_with_the_next_round(scene: LagScene) -> None:
    scene.write(5)
    scene.commit(0)
    scene.commit(0, "kept")
    scene.round()
    scene.client.send(DeleteGroupsRequest(groups_names=["g"]))
    scene.round()

    assert {
        place[0] for name, shown in scene.series.items() if name.startswith("group") for place in shown
    } == {"kept"}
    assert [each.payload.terminating for each in scene.records].count(True) == 1


def test_a_create_time_that_lies_about_a_record_before_the_start(scene: LagScene) -> None:
    """A record that is older than the table has its timestamp, but is not younger than the first look."""
    scene.write(1, stamp_ms=scene.clock.now_ms() + 3_600_000)
    scene.commit(0)
    scene.round()
    assert scene.of()["lag.time"] == pytest.approx(30, abs=2.5)


def test_after_a_restart_the_age_comes_from_the_log(scene: LagScene) -> None:
    scene.write(5)
    scene.commit(0)
    scene.round(4)
    after = LagScene(scene.broker)
    after.round()

    assert after.of()["lag.time"] == pytest.approx(150, abs=1)


def test_without_a_timestamp_there_is_no_time_but_a_lag(scene: LagScene) -> None:
    scene.write(5, stamp_ms=-1)
    scene.commit(0)
    scene.round()

    assert scene.of() == {"lag": 5, "offset": 0}
    assert scene.rounds.left_out == {"age": 1, "budget": 0}


def test_the_brokers_timestamps_are_believed() -> None:
    scene = LagScene(make_broker())
    scene.broker.topics.create("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    scene.write(5, topic="stamped", stamp_ms=5)
    scene.commit(0, topic="stamped")
    scene.round()

    assert scene.of("g", "stamped", "0")["lag.time"] == pytest.approx(30, abs=1)


def test_a_partition_whose_disk_failed_has_no_series_and_holds_up_no_other(scene: LagScene) -> None:
    scene.broker.topics.create("two", 2, {})
    for index in (0, 1):
        scene.write(5, topic="two", index=index)
        scene.commit(1, topic="two", index=index)
    scene.round()
    scene.log("two", 0).go_offline()
    scene.round()

    assert scene.of("g", "two", "0") == {}
    assert scene.of("g", "two", "1")["lag"] == 4
