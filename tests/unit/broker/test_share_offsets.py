"""Start offsets of share groups: described, set and deleted; with the answers of Kafka 4.4.0."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.features import SHARE_VERSION
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.delete_share_group_offsets import (
    DeletedTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from odradek.wire.messages.describe_share_group_offsets import (
    DescribedShareOffsets,
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsGroup,
    ShareOffsetsTopic,
)
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from odradek.wire.types import NIL_UUID
from support.batches import batch_of
from support.broker import BrokerClient

Offsets = dict[tuple[str, int], tuple[int, int, int]]
"""Start offset, lag and error code by topic and partition."""


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient()
    client.broker.features.finalize(SHARE_VERSION, 2)
    client.broker.topics.create("t", 2, {})
    client.broker.topics.create("u", 1, {})
    return client


def beat(client: BrokerClient, epoch: int = 0) -> None:
    names = None if epoch else ["t"]
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=epoch, subscribed_topic_names=names
    )
    assert client.send(request).error_code == 0


def describe(
    client: BrokerClient, topics: dict[str, list[int]] | None = None, group: str = "g", version: int = 1
) -> Offsets:
    named = [
        ShareOffsetsTopic(topic_name=name, partitions=indexes) for name, indexes in (topics or {}).items()
    ]
    asked = ShareOffsetsGroup(group_id=group, topics=None if topics is None else named)
    (found,) = client.send(DescribeShareGroupOffsetsRequest(groups=[asked]), version).groups
    assert isinstance(found, DescribedShareOffsets)
    assert (found.group_id, found.error_code) == (group, 0)
    return {
        (topic.topic_name, row.partition_index): (row.start_offset, row.lag, row.error_code)
        for topic in found.topics
        for row in topic.partitions
    }


def alter(client: BrokerClient, offsets: dict[str, dict[int, int]], group: str = "g") -> Any:
    topics = [
        AlteredTopic(
            topic_name=name,
            partitions=[AlteredPartition(partition_index=i, start_offset=at) for i, at in each.items()],
        )
        for name, each in offsets.items()
    ]
    answer = client.send(AlterShareGroupOffsetsRequest(group_id=group, topics=topics))
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    return answer


def delete(client: BrokerClient, *topics: str, group: str = "g") -> DeleteShareGroupOffsetsResponse:
    named = [DeletedTopic(topic_name=name) for name in topics]
    answer = client.send(DeleteShareGroupOffsetsRequest(group_id=group, topics=named))
    assert isinstance(answer, DeleteShareGroupOffsetsResponse)
    return answer


def topic_id(broker: Broker, name: str) -> bytes:
    return broker.topics.by_name[name].id


def test_partitions_without_deliveries_have_no_offsets(client: BrokerClient) -> None:
    beat(client)

    assert describe(client) == {("t", 0): (-1, -1, 0), ("t", 1): (-1, -1, 0)}
    assert describe(client, {"t": [1, 9], "gone": [0]}) == {
        ("t", 1): (-1, -1, 0),
        ("t", 9): (-1, -1, 0),
        ("gone", 0): (-1, -1, 0),
    }
    assert describe(client, group="unknown") == {}
    assert describe(client, {"t": [0]}, group="unknown") == {("t", 0): (-1, -1, 0)}


def test_the_lag_is_what_is_not_done_yet(client: BrokerClient) -> None:
    beat(client)
    data = PartitionProduceData(index=0, records=batch_of(*[b"x"] * 10))
    client.send(ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[data])]), 12)
    store = client.broker.groups.store.shares
    store.put_share_partitions([("g", topic_id(client.broker, "t"), 0, 2, 3, b"")])

    assert describe(client, {"t": [0]}) == {("t", 0): (2, 5, 0)}
    assert describe(client, {"t": [0]}, version=0) == {("t", 0): (2, -1, 0)}


def test_offsets_of_a_new_group_are_set(client: BrokerClient) -> None:
    answer = alter(client, {"t": {0: 7, 1: -1, 9: 1}, "gone": {0: 1}})

    assert answer.error_code == 0
    assert [
        (
            topic.topic_name,
            topic.topic_id,
            [(row.partition_index, row.error_code) for row in topic.partitions],
        )
        for topic in answer.responses
    ] == [
        ("t", topic_id(client.broker, "t"), [(0, 0), (1, 0), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("gone", NIL_UUID, [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]
    group = client.broker.groups.group("g")
    assert (group.state_name, group.generation) == ("Empty", 1)
    assert describe(client) == {("t", 0): (7, -7, 0), ("t", 1): (-1, -1, 0)}


def test_a_member_gets_the_partitions_of_altered_offsets_at_once(client: BrokerClient) -> None:
    alter(client, {"t": {0: 7, 1: 7}})
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])

    (topic,) = client.send(request).assignment.topic_partitions

    assert topic.partitions == [0, 1]


def test_what_is_known_of_altered_partitions_is_dropped(client: BrokerClient) -> None:
    dropped: list[Any] = []
    client.broker.groups.shares.dropped = lambda group, partitions: dropped.append(
        (group, list(partitions or ()))
    )
    t = topic_id(client.broker, "t")

    alter(client, {"t": {0: 7}})
    delete(client, "t")

    assert dropped == [("g", [(t, 0)])] * 2


def test_groups_with_members_and_others_are_not_changed(client: BrokerClient) -> None:
    beat(client)
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="c", member_id="c", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert client.send(consumer).error_code == 0

    codes = {
        group: (alter(client, {"t": {0: 1}}, group).error_code, delete(client, "t", group=group).error_code)
        for group in ("g", "c", "")
    }

    assert codes == {
        "g": (ErrorCode.NON_EMPTY_GROUP,) * 2,
        "c": (ErrorCode.GROUP_ID_NOT_FOUND,) * 2,
        "": (ErrorCode.INVALID_GROUP_ID,) * 2,
    }
    assert delete(client, "t", group="unknown").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_deleted_by_topic(client: BrokerClient) -> None:
    alter(client, {"t": {0: 7, 1: 8}})

    answer = delete(client, "t", "u", "gone")

    assert [(row.topic_name, row.error_code, row.error_message) for row in answer.responses] == [
        ("t", 0, None),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
        ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ]
    assert describe(client) == {}
    assert describe(client, {"t": [0]}) == {("t", 0): (-1, -1, 0)}


def test_without_the_feature_nothing_is_answered(client: BrokerClient) -> None:
    client.broker.features.finalize(SHARE_VERSION, 0)
    asked = [ShareOffsetsGroup(group_id="g"), ShareOffsetsGroup(group_id="h")]

    described = client.send(DescribeShareGroupOffsetsRequest(groups=asked)).groups

    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert [(each.group_id, each.error_code) for each in described] == [
        ("g", unsupported),
        ("h", unsupported),
    ]
    assert alter(client, {"t": {0: 1}}).error_code == unsupported
    assert delete(client, "t").error_code == unsupported
