"""The limits of groups, their members and their memory."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from odradek.group.group_config import GroupConfig
from odradek.group.member_sizes import PARTITION_BYTES
from odradek.testing.clock import MockClock
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.join_group import JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.broker import BrokerClient, make_broker
from support.group_client import DELAY_MS, SESSION_MS, GroupClient
from support.state_limits import (
    OK,
    REFUSED,
    commit,
    configure_group,
    join_classic,
    join_consumer,
    of,
)


@pytest.mark.parametrize("create", [join_classic, join_consumer, commit])
def test_groups(create: Any) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))
    client.broker.topics.create("t", 1, {})

    codes = [create(client, group_id) for group_id in ("a", "b", "c", "a")]

    assert codes == [OK, OK, REFUSED, OK]
    assert of(client.broker, "groups") == (2, 1)


def test_a_deleted_group_makes_room() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")

    client.send(DeleteGroupsRequest(groups_names=["a"]))

    assert commit(client, "b") == OK


def test_configured_groups() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))

    codes = configure_group(client, "a", "b", "c") + configure_group(client, "a", "d")

    assert codes == [OK, OK, REFUSED, OK, REFUSED]
    assert of(client.broker, "configured groups") == (2, 2)


def join(
    client: GroupClient, group_id: str, member_id: str = "", metadata: bytes = b"m"
) -> JoinGroupResponse:
    """Join a classic group; the answer of a version that needs no member id, if it is there at once."""
    answers = client.post(client.joining(group_id, member_id, metadata), 3)
    answer = answers[0] if answers else JoinGroupResponse()
    assert isinstance(answer, JoinGroupResponse)
    return answer


def test_members_of_all_groups() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=3)))
    client.broker.topics.create("t", 1, {})

    codes = [
        join(client, "a").error_code,
        join(client, "b").error_code,
        join_consumer(client, "c"),
        join(client, "b").error_code,
        join_consumer(client, "d"),
        join_consumer(client, "c"),
        join_classic(client, "e"),
    ]

    assert codes == [OK, OK, OK, REFUSED, REFUSED, OK, REFUSED]
    assert of(client.broker, "group members") == (3, 3)
    assert sorted(group.group_id for group in client.broker.groups) == ["a", "b", "c"]


def test_member_ids_that_are_not_used_count_too() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=2)))

    codes = [join_classic(client, "a"), join_classic(client, "a"), join_classic(client, "b")]
    client.clock.advance(SESSION_MS)

    assert codes == [OK, OK, REFUSED]
    assert of(client.broker, "group members") == (0, 1)
    assert join_classic(client, "b") == OK


def test_a_member_that_leaves_makes_room() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=1)))
    client.broker.topics.create("t", 1, {})
    join_consumer(client, "c")

    client.send(ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=-1))

    assert join_consumer(client, "d") == OK


def test_the_bytes_of_members() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=1_000)))

    codes = [
        join(client, "a", metadata=b"x" * 600).error_code,
        join(client, "b", metadata=b"x" * 600).error_code,
        join(client, "c", metadata=b"x" * 300).error_code,
    ]

    assert codes == [OK, REFUSED, OK]
    assert of(client.broker, "bytes of group members") == (600 + 300 + 2 * len("range"), 1)


def test_the_bytes_of_assignments() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=1_000)))
    answers = client.post(client.joining("a"), 3)
    client.clock.advance(DELAY_MS)
    (joined,) = answers

    refused, accepted = (
        client.post(
            SyncGroupRequest(
                group_id="a",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))],
            ),
            3,
        )[0].error_code
        for size in (1_000, 500)
    )

    assert (refused, accepted) == (REFUSED, OK)
    assert of(client.broker, "bytes of group members") == (506, 1)


def test_a_large_subscription_of_a_known_member_is_refused() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=500)))
    client.broker.topics.create("t", 1, {})
    join_consumer(client, "c")
    (group,) = client.broker.groups
    beat = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=group.generation)
    larger = replace(beat, subscribed_topic_names=["x" * 1_000])

    codes = [client.send(request).error_code for request in (larger, beat)]

    assert codes == [REFUSED, OK]
    assert of(client.broker, "bytes of group members") == (len("t") + PARTITION_BYTES, 1)


def test_refusals_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")
    clock = client.broker.clock
    assert isinstance(clock, MockClock)

    with caplog.at_level(logging.WARNING):
        for _ in range(25):
            commit(client, "b")
            clock.advance(5_000)

    assert [row.__dict__["refused"] for row in caplog.records] == [1, 13, 25]
    assert {row.__dict__["setting"] for row in caplog.records} == {"groups.max"}
