from __future__ import annotations

import pytest

from odradek.broker.features import GROUP_VERSION
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.broker import BrokerClient

GROUP = "readers"


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient()
    client.broker.topics.create("a", 2, {})
    return client


def join(
    client: BrokerClient, member_id: str = "m1", version: int = 1, **more: str | None
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["a"],
        topic_partitions=[],
    )
    for field, value in more.items():
        setattr(request, field, value)
    answer = client.send(request, version)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


def beat(client: BrokerClient, member_id: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch)
    answer = client.send(request)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return answer


def pass_time(client: BrokerClient, elapsed_ms: int) -> None:
    assert isinstance(client.broker.clock, MockClock)
    client.broker.clock.advance(elapsed_ms)


def classic_join(client: BrokerClient) -> ErrorCode:
    """The immediate error code for a consumer of the classic protocol; NONE if it has to wait."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answer = client.send(request, 3)
    return ErrorCode.NONE if answer is None else ErrorCode(answer.error_code)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_gets_its_partitions(client: BrokerClient, version: int) -> None:
    answer = join(client, version=version)

    assert answer.error_code == ErrorCode.NONE
    assert answer.assignment is not None
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (client.broker.topics.by_name["a"].id, [0, 1])


def test_an_error_has_a_message(client: BrokerClient) -> None:
    answer = join(client, subscribed_topic_regex="(")

    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.error_message is not None
    assert "`(`" in answer.error_message


def test_without_the_feature_the_protocol_is_unsupported(client: BrokerClient) -> None:
    client.broker.features.finalize(GROUP_VERSION, 0)

    answer = join(client)

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_topic_that_is_created_is_assigned(client: BrokerClient) -> None:
    join(client, subscribed_topic_regex=".*")
    pass_time(client, 1_000)
    created = client.broker.topics.create("b", 1, {})

    answer = beat(client, "m1", 2)

    assert answer.assignment is not None
    assert created.id in {topic.topic_id for topic in answer.assignment.topic_partitions}


def test_a_member_commits_with_its_epoch(client: BrokerClient) -> None:
    joined = join(client)
    commit = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=joined.member_epoch,
        member_id="m1",
        topics=[
            OffsetCommitRequestTopic(
                name="a", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
            )
        ],
    )

    answers = {}
    for epoch in (joined.member_epoch, joined.member_epoch + 1):
        commit.generation_id_or_member_epoch = epoch
        answers[epoch] = client.send(commit, 9).topics[0].partitions[0].error_code

    assert list(answers.values()) == [ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH]


def test_a_classic_group_with_members_is_not_found(client: BrokerClient) -> None:
    classic_join(client)

    answer = join(client)

    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_classic_member_cannot_join_a_group_with_consumers(client: BrokerClient) -> None:
    join(client)

    code = classic_join(client)

    assert code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_can_change_its_protocol_and_back(client: BrokerClient) -> None:
    join(client)
    beat(client, "m1", -1)

    code = classic_join(client)

    assert code is ErrorCode.NONE
    assert client.broker.groups.group(GROUP).group_type == "classic"
    pass_time(client, 60_000)  # until the classic member has left
    assert join(client).error_code == ErrorCode.NONE
    assert client.broker.groups.group(GROUP).group_type == "consumer"
