"""What a streams group is after its host was killed: as before, and its members go on (KIP-1071).

Kafka stores the same in ``__consumer_offsets`` (StreamsCoordinatorRecordHelpers.java).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from odradek.group.group import Committer
from odradek.metadata.failure import MetadataFailure
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import Setting, TopicInfo, UserEndpoint
from support.streams_groups import GROUP, StreamsGroups, active, standby, statuses, topology


def reading(**topics: int) -> StreamsGroups:
    """Groups of members that read the topic ``words``, which has four partitions."""
    return StreamsGroups(words=4, **topics)


@contextmanager
def failing_writes(groups: StreamsGroups) -> Iterator[None]:
    """Meanwhile nothing can be stored."""
    groups.store.connection.execute("pragma query_only = on")
    yield
    groups.store.connection.execute("pragma query_only = off")


def test_a_member_goes_on_with_its_epoch_and_its_tasks() -> None:
    before = reading()
    before.join("m1")

    after = before.restarted()

    assert after.group.state_name == "Stable"
    beat = after.own("m1", 0, 1, 2, 3, epoch=2)
    assert (beat.member_epoch, active(beat), beat.status) == (2, None, [])
    assert after.group.group_epoch == 2


def test_everything_that_is_described_is_as_before() -> None:
    before = reading(log=4)
    before.configure(num_standby_replicas=1)
    stateful = topology("words", changelog="log")
    before.join(
        "m1",
        stateful,
        rack_id="r1",
        instance_id="i1",
        user_endpoint=UserEndpoint(host="h", port=9),
        client_tags=[Setting(key="zone", value="a")],
    )
    before.join("m2", stateful)
    before.own("m1", 0, 1, 2, 3)
    before.own("m1", 0, 1, standby=(2, 3))

    after = before.restarted()

    assert after.described() == before.described()
    assert after.group.static_members == {"i1": "m1"}
    assert after.group.sizes.bytes == before.group.sizes.bytes


def test_a_rebalance_goes_on_where_it_was() -> None:
    before = reading()
    before.join("m1")
    before.join("m2")
    before.own("m1", 0, 1, 2, 3)

    after = before.restarted()

    assert after.group.state_name == "Reconciling"
    assert active(after.beat("m2", 3)) is None
    assert after.own("m1", 0, 1, epoch=2).member_epoch == 3
    assert active(after.beat("m2", 3)) == [2, 3]
    assert active(after.restarted().own("m2", 2, 3)) is None


def test_an_answer_that_was_lost_is_given_again() -> None:
    before = reading()
    before.join("m1")
    before.put_topic("words", 5)
    before.own("m1", 0, 1, 2, 3)

    after = before.restarted()

    assert after.own("m1", 0, 1, 2, 3, epoch=2).member_epoch == 3
    with pytest.raises(ApiError) as refusal:
        after.own("m1", 0, 1, 2, 3, epoch=1)
    assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_offsets_are_read_and_committed_with_the_epoch_of_before() -> None:
    before = reading()
    before.join("m1")

    after = before.restarted()

    after.group.validate_offset_fetch("m1", 2)
    committer = Committer(member_id="m1", generation_id=2, is_transactional=True)
    assert after.group.validate_offset_commit(committer) is None
    with pytest.raises(ApiError) as refusal:
        after.group.validate_offset_fetch("m9", 2)
    assert refusal.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_with_an_older_epoch_is_valid_for_what_was_held_since_then() -> None:
    before = reading()
    before.join("m1")
    before.put_topic("words", 5)
    before.own("m1", 0, 1, 2, 3)

    after = before.restarted()

    check = after.group.validate_offset_commit(Committer(member_id="m1", generation_id=2))
    assert check is not None
    check(after.topics.ids["words"], 0)
    with pytest.raises(ApiError) as refusal:
        check(after.topics.ids["words"], 4)
    assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH


def test_a_member_that_does_not_come_back_is_removed() -> None:
    before = reading()
    before.join("m1")
    before.join("m2")

    after = before.restarted()
    after.clock.advance(44_999)
    after.beat("m2", 3)
    after.clock.advance(1)

    assert list(after.group.members) == ["m2"]
    assert list(after.restarted().group.members) == ["m2"]


def test_members_are_awaited_once_they_can_reach_the_host() -> None:
    before = reading()
    before.join("m1", rebalance_timeout_ms=10_000)
    before.join("m2")
    before.own("m1", 0, 1, 2, 3)

    after = StreamsGroups(before.coordinator.config, before)
    after.clock.advance(60_000)  # a start takes its time

    assert list(after.group.members) == ["m1", "m2"]
    after.coordinator.start()
    after.clock.advance(10_000)
    assert list(after.group.members) == ["m2"]


def test_the_epochs_of_an_empty_group_are_equal() -> None:
    groups = reading()
    groups.join("m1")

    groups.beat("m1", -1)

    assert groups.group.epochs == (3, 3)


def test_a_group_has_its_own_settings_from_the_start() -> None:
    before = reading()
    before.join("m1")
    before.coordinator.configure(GROUP, {"streams.session.timeout.ms": "60000"})

    after = before.restarted()
    after.clock.advance(59_999)
    assert list(after.group.members) == ["m1"]
    after.clock.advance(1)

    assert after.group.is_empty


def test_a_member_that_keeps_its_tasks_too_long_is_removed() -> None:
    before = reading()
    before.join("m1", rebalance_timeout_ms=10_000)
    before.join("m2")
    before.own("m1", 0, 1, 2, 3)

    after = before.restarted()
    after.clock.advance(10_000)

    assert list(after.group.members) == ["m2"]
    assert list(after.restarted().group.members) == ["m2"]


def test_a_static_member_finds_its_place() -> None:
    before = reading()
    before.join("m1", instance_id="i1", process="p")
    before.own("m1", 0, 1, 2, 3)
    before.beat("m1", -2, instance_id="i1")

    back = before.restarted().join("m2", instance_id="i1", process="p")

    assert (back.member_epoch, active(back)) == (2, [0, 1, 2, 3])


def test_a_member_that_came_back_under_another_id_is_the_only_one() -> None:
    before = reading()
    before.join("m1", instance_id="i1")
    before.beat("m1", -2, instance_id="i1")
    before.join("m2", instance_id="i1")

    after = before.restarted()

    assert list(after.group.members) == ["m2"]
    assert active(after.own("m2", 0, 1, 2, 3)) is None


def test_a_group_keeps_its_topology_when_its_members_have_left() -> None:
    before = reading()
    before.join("m1")
    before.beat("m1", -1)

    after = before.restarted()

    assert (after.group.state_name, after.group.generation) == ("Empty", 3)
    with pytest.raises(ApiError) as refusal:
        after.join("m2", topology("other"))
    assert refusal.value.message == "Topology updates are not supported yet."
    assert after.join("m2").member_epoch == 4


def test_a_topic_that_changed_before_a_heartbeat_begins_a_new_epoch() -> None:
    before = reading()
    before.join("m1")
    before.put_topic("words", 5)

    beat = before.restarted().own("m1", 0, 1, 2, 3, epoch=2)

    assert (beat.member_epoch, active(beat)) == (3, [0, 1, 2, 3, 4])


def test_another_number_of_standbys_begins_a_new_epoch() -> None:
    before = reading(log=4)
    before.join("m1", topology("words", changelog="log"))

    after = before.restarted()
    after.configure(num_standby_replicas=1)

    assert after.own("m1", 0, 1, 2, 3, epoch=2).member_epoch == 3


def test_an_initial_delay_is_over_with_the_next_heartbeat() -> None:
    before = reading()
    before.configure(initial_rebalance_delay_ms=3_000)
    before.join("m1")

    beat = before.restarted().beat("m1", 1)

    assert (beat.member_epoch, active(beat)) == (2, [0, 1, 2, 3])


def test_tasks_that_were_assigned_when_the_delay_was_over_are_stored() -> None:
    before = reading()
    before.configure(initial_rebalance_delay_ms=3_000)
    before.join("m1")
    before.clock.advance(3_000)

    after = before.restarted()

    assert (after.group.target.epoch, len(after.group.target.of("m1"))) == (2, 4)


def test_a_topology_that_fits_no_topics_does_not_hinder_a_start() -> None:
    """It is not compared with the topics as long as its source topics are missing."""
    before = StreamsGroups()
    looping = topology(
        "words", repartition_source_topics=[TopicInfo(name="r")], repartition_sink_topics=["other"]
    )
    before.join("m1", looping)
    before.put_topic("words", 1)

    after = before.restarted()

    with pytest.raises(ApiError) as refusal:
        after.beat("m1", 2)
    assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_standby_keeps_its_role() -> None:
    before = reading(log=4)
    before.configure(num_standby_replicas=1)
    stateful = topology("words", changelog="log")
    before.join("m1", stateful)
    before.join("m2", stateful)
    before.own("m1", 0, 1, 2, 3)
    before.own("m1", 0, 1, standby=(2, 3))
    before.beat("m2")

    after = before.restarted()
    after.beat("m1", -1)
    beat = after.beat("m2")

    assert (active(beat), standby(beat)) == ([0, 1, 2, 3], [])


def test_a_heartbeat_without_news_writes_nothing() -> None:
    groups = reading()
    groups.join("m1")
    groups.join("m2")
    groups.own("m1", 0, 1, 2, 3)
    groups.own("m1", 0, 1)
    groups.beat("m2")
    before = groups.store.connection.total_changes

    groups.own("m1", 0, 1)
    groups.beat("m2")

    assert groups.store.connection.total_changes == before


def test_a_member_is_told_to_try_again_if_its_group_cannot_be_stored() -> None:
    groups = reading()
    with failing_writes(groups), pytest.raises(MetadataFailure) as refusal:
        groups.join("m1")

    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert GROUP not in groups.coordinator.groups
    assert groups.join("m1").member_epoch == 2


def test_what_could_not_be_stored_is_stored_with_the_next_heartbeat() -> None:
    groups = reading()
    groups.join("m1")
    with failing_writes(groups), pytest.raises(MetadataFailure):
        groups.join("m2")

    groups.join("m2")

    assert list(groups.restarted().group.members) == ["m1", "m2"]


def test_a_deleted_group_leaves_nothing() -> None:
    groups = reading()
    groups.join("m1")
    groups.beat("m1", -1)

    groups.coordinator.remove(GROUP)

    store = groups.store
    assert (*store.groups(), *store.group_states(), *store.group_members()) == ()


@pytest.mark.parametrize("member", ["{}", "[]", "no JSON", '{"epoch": "two"}'])
def test_a_damaged_member_is_found_at_the_start(member: str) -> None:
    before = reading()
    before.join("m1")
    before.store.put_group((GROUP, "streams", "streams", 2, None), members=[(GROUP, "m1", member)])

    with pytest.raises(ValueError, match="member m1 of group streamers cannot be read"):
        before.restarted()


@pytest.mark.parametrize("state", ["{}", "[]", '{"assignment_epoch": 1, "topology": "AAAA"}'])
def test_a_damaged_group_is_found_at_the_start(state: str) -> None:
    before = reading()
    before.join("m1")
    before.store.put_group((GROUP, "streams", "streams", 2, None), state)

    with pytest.raises(ValueError, match="group streamers cannot be read"):
        before.restarted()


def test_the_first_member_that_asks_for_a_shutdown_is_named() -> None:
    groups = reading()
    for member_id in ("m1", "m2"):
        groups.join(member_id)
        groups.beat(member_id, shutdown_application=True)

    ((_, detail),) = statuses(groups.beat("m2"))
    assert detail.startswith("Streams group member m1 ")
