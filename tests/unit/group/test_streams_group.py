"""The life of a streams group: epochs, tasks, statuses, sessions (KIP-1071)."""

from __future__ import annotations

import pytest

from odradek.group.group import Committer
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import TaskOffset, UserEndpoint
from support.streams_groups import StreamsGroups, active, standby, statuses, topology

DELAYED = "Assignment delayed due to the configured"


def reading(**topics: int) -> StreamsGroups:
    """Groups of members that read the topic ``words``, which has four partitions."""
    return StreamsGroups(words=4, **topics)


def test_the_first_member_gets_all_tasks_at_epoch_2() -> None:
    joined = reading().join("m1")

    assert (joined.member_epoch, active(joined), standby(joined)) == (2, [0, 1, 2, 3], [])
    assert (joined.heartbeat_interval_ms, joined.task_offset_interval_ms) == (5_000, 60_000)
    assert (joined.acceptable_recovery_lag, joined.acceptable_recovery_lag_legacy) == (10_000, 10_000)
    assert joined.status == []


def test_unchanged_tasks_are_not_repeated() -> None:
    groups = reading()
    groups.join("m1")

    beat = groups.own("m1", 0, 1, 2, 3)

    assert (beat.active_tasks, beat.standby_tasks, beat.warmup_tasks) == (None, None, None)
    assert groups.group.state_name == "Stable"


def test_a_task_moves_once_its_holder_has_given_it_up() -> None:
    groups = reading()
    groups.join("m1")

    joined = groups.join("m2")
    told = groups.own("m1", 0, 1, 2, 3)

    assert (joined.member_epoch, active(joined)) == (3, [])
    assert (told.member_epoch, active(told)) == (2, [0, 1])
    assert groups.group.state_name == "Reconciling"
    assert active(groups.beat("m2")) is None
    given_up = groups.own("m1", 0, 1)
    assert (given_up.member_epoch, given_up.active_tasks) == (3, None)
    assert active(groups.beat("m2")) == [2, 3]
    assert groups.group.state_name == "Stable"


def test_a_member_that_keeps_its_tasks_too_long_is_removed() -> None:
    groups = reading()
    groups.join("m1", rebalance_timeout_ms=10_000)
    groups.join("m2")
    groups.own("m1", 0, 1, 2, 3)

    groups.clock.advance(10_000)

    assert list(groups.group.members) == ["m2"]


def test_a_silent_member_is_removed() -> None:
    groups = reading()
    groups.join("m1")

    groups.clock.advance(45_000)

    assert groups.group.state_name == "Empty"


# -- topics


def test_a_group_whose_source_topics_are_missing_is_not_ready() -> None:
    groups = StreamsGroups()

    joined = groups.join("m1")

    assert (active(joined), statuses(joined)) == ([], [(1, "Source topics words are missing.")])
    assert groups.group.state_name == "NotReady"


def test_tasks_come_once_the_topics_exist() -> None:
    groups = StreamsGroups()
    groups.join("m1")

    groups.put_topic("words", 2)
    beat = groups.beat("m1")

    assert (beat.member_epoch, active(beat), beat.status) == (3, [0, 1], [])
    assert groups.group.state_name == "Stable"


def test_more_partitions_bring_more_tasks() -> None:
    groups = reading()
    groups.join("m1")

    groups.put_topic("words", 6)

    assert active(groups.beat("m1")) == [0, 1, 2, 3, 4, 5]


def test_a_topic_that_is_made_anew_begins_a_new_epoch() -> None:
    groups = reading()
    groups.join("m1")

    groups.topics.delete("words")
    groups.put_topic("words", 4)

    assert groups.beat("m1").member_epoch == 3


def test_another_topic_does_not_begin_a_new_epoch() -> None:
    groups = reading()
    groups.join("m1")

    groups.put_topic("other", 4)

    assert groups.beat("m1").member_epoch == 2


def test_internal_topics_are_awaited() -> None:
    groups = reading()
    stateful = topology("words", changelog="log")

    joined = groups.join("m1", stateful)
    groups.put_topic("log", 4)
    beat = groups.beat("m1")

    assert statuses(joined) == [(3, "Internal topics are missing: log")]
    assert active(joined) == []
    assert (beat.member_epoch, active(beat), beat.status) == (3, [0, 1, 2, 3], [])


# -- delays


def test_the_first_members_share_the_first_assignment() -> None:
    groups = reading()
    groups.configure(initial_rebalance_delay_ms=3_000)

    first = groups.join("m1")
    groups.clock.advance(2_000)
    second = groups.join("m2")
    groups.clock.advance(1_000)

    for joined in (first, second):
        assert (joined.member_epoch, active(joined)) == (1, [])
        assert statuses(joined) == [(5, f"{DELAYED} initial rebalance delay.")]
    assert active(groups.beat("m1")) == [0, 2]
    assert active(groups.beat("m2")) == [1, 3]


def test_a_group_that_empties_waits_no_longer() -> None:
    groups = reading()
    groups.configure(initial_rebalance_delay_ms=3_000)
    groups.join("m1")

    groups.beat("m1", -1)
    groups.clock.advance(3_000)

    assert groups.group.target.by_member == {}


def test_a_second_assignment_is_put_off() -> None:
    groups = reading()
    groups.configure(assignment_interval_ms=1_000)
    groups.join("m1")

    joined = groups.join("m2")
    groups.clock.advance(1_000)

    assert statuses(joined) == [(5, f"{DELAYED} assignment interval.")]
    assert joined.member_epoch == 2
    beat = groups.beat("m2")
    assert (beat.member_epoch, beat.status) == (3, [])


# -- standbys


def test_two_processes_keep_the_state_of_each_other() -> None:
    groups = reading(log=4)
    groups.configure(num_standby_replicas=1)
    stateful = topology("words", changelog="log")

    groups.join("m1", stateful)
    groups.join("m2", stateful)
    first = groups.own("m1", 0, 1, 2, 3)
    groups.own("m1", 0, 1)
    second = groups.beat("m2")

    assert (active(first), standby(first)) == ([0, 1], [2, 3])
    assert (active(second), standby(second)) == ([2, 3], [0, 1])


def test_a_standby_becomes_active_without_being_given_up() -> None:
    groups = reading(log=4)
    groups.configure(num_standby_replicas=1)
    stateful = topology("words", changelog="log")
    groups.join("m1", stateful)
    groups.join("m2", stateful)
    groups.own("m1", 0, 1, 2, 3)
    groups.own("m1", 0, 1, standby=(2, 3))
    groups.beat("m2")

    groups.beat("m1", -1)
    beat = groups.beat("m2")

    assert (active(beat), standby(beat)) == ([0, 1, 2, 3], [])


def test_a_changed_number_of_standbys_begins_a_new_epoch() -> None:
    groups = reading(log=4)
    groups.join("m1", topology("words", changelog="log"))

    groups.configure(num_standby_replicas=1)

    assert groups.beat("m1").member_epoch == 3


def test_a_member_with_state_on_its_disk_gets_the_task() -> None:
    groups = reading()
    groups.configure(initial_rebalance_delay_ms=1_000)
    groups.join("m1")
    groups.join("m2", task_offsets=[TaskOffset(subtopology_id="s", partition=0, offset=9)])
    groups.clock.advance(1_000)

    assert active(groups.beat("m2")) == [0, 3]


def test_members_of_a_process_do_not_have_a_task_twice() -> None:
    groups = reading(log=4)
    groups.configure(num_standby_replicas=1)
    stateful = topology("words", changelog="log")
    groups.join("m1", stateful, process="p")

    joined = groups.join("m2", stateful, process="p")

    assert standby(joined) == []


# -- shutdown, endpoints


def test_a_shutdown_is_told_to_all_until_the_group_is_empty() -> None:
    groups = reading()
    groups.join("m1")
    groups.join("m2")
    groups.beat("m1", shutdown_application=True)

    told = (
        4,
        "Streams group member m1 encountered a fatal error and requested a shutdown for the entire "
        "application.",
    )
    assert told in statuses(groups.beat("m2"))
    assert told in statuses(groups.join("m3"))
    for member_id in ("m1", "m2", "m3"):
        groups.beat(member_id, -1)
    assert told not in statuses(groups.join("m4"))


def test_members_learn_where_state_can_be_asked_for() -> None:
    groups = StreamsGroups(wide=3, words=2)
    asked = UserEndpoint(host="h", port=9)

    joined = groups.join("m1", topology("words", "wide"), user_endpoint=asked)

    assert joined.partitions_by_user_endpoint is not None
    (found,) = joined.partitions_by_user_endpoint
    assert joined.endpoint_information_epoch == 1
    assert found.user_endpoint == asked
    assert [(each.topic, each.partitions) for each in found.active_partitions] == [
        ("words", [0, 1]),
        ("wide", [0, 1, 2]),
    ]


def test_a_member_that_knows_the_endpoints_does_not_get_them_again() -> None:
    groups = reading()
    joined = groups.join("m1", user_endpoint=UserEndpoint(host="h", port=9))

    known = joined.endpoint_information_epoch
    assert groups.beat("m1", endpoint_information_epoch=known).partitions_by_user_endpoint is None
    assert groups.beat("m1").partitions_by_user_endpoint is not None


def test_a_member_that_joins_again_as_it_was_changes_no_endpoints() -> None:
    groups = reading()
    here = UserEndpoint(host="h", port=9)
    first = groups.join("m1", user_endpoint=here)

    again = groups.join("m1", user_endpoint=here)
    moved = groups.join("m1", user_endpoint=UserEndpoint(host="h", port=10))

    epochs = [each.endpoint_information_epoch for each in (first, again, moved)]
    assert epochs == [1, 1, 2]


# -- offsets


def committer(epoch: int, member_id: str = "m1", **fields: object) -> Committer:
    return Committer(member_id=member_id, generation_id=epoch, **fields)  # type: ignore[arg-type]


def test_offsets_are_committed_with_the_member_epoch() -> None:
    groups = reading()
    groups.join("m1")

    assert groups.group.validate_offset_commit(committer(2)) is None
    for wrong, code in (
        (committer(3), ErrorCode.STALE_MEMBER_EPOCH),
        (committer(2, "m9"), ErrorCode.UNKNOWN_MEMBER_ID),
        (committer(-1, ""), ErrorCode.UNKNOWN_MEMBER_ID),
        (committer(2, api_version=8), ErrorCode.UNSUPPORTED_VERSION),
    ):
        with pytest.raises(ApiError) as refusal:
            groups.group.validate_offset_commit(wrong)
        assert refusal.value.code is code


def test_an_older_epoch_may_commit_what_the_member_has_had_since_then() -> None:
    groups = reading()
    groups.join("m1")
    groups.put_topic("words", 5)
    groups.own("m1", 0, 1, 2, 3)
    check = groups.group.validate_offset_commit(committer(2))
    assert check is not None

    topic_id = groups.topics.ids["words"]
    check(topic_id, 0)
    for partition in (4, 9):
        with pytest.raises(ApiError) as refusal:
            check(topic_id, partition)
        assert refusal.value.code is ErrorCode.STALE_MEMBER_EPOCH


# -- other kinds of groups, sizes


def test_a_group_with_members_cannot_be_deleted() -> None:
    groups = reading()
    groups.join("m1")

    with pytest.raises(ApiError) as refusal:
        groups.group.validate_delete()

    assert refusal.value.code is ErrorCode.NON_EMPTY_GROUP


def test_what_a_group_holds_is_counted() -> None:
    groups = reading()
    totals = groups.coordinator.totals

    groups.join("m1")
    assert (totals.members, totals.bytes > 400) == (1, True)
    groups.beat("m1", -1)
    assert totals.members == 0
    groups.coordinator.remove("streamers")
    assert totals.bytes == 0
