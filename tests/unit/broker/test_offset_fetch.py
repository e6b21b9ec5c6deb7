"""The OffsetFetch handler: committed, missing and unstable offsets."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from support.group_client import GroupClient


@pytest.fixture
def client() -> GroupClient:
    """A client of a broker with topics ``t`` and ``u``; group ``g`` has offset 5 of ``t-0``."""
    client = GroupClient()
    for name in ("t", "u"):
        client.broker.topics.create(name, 2, {})
    client.broker.groups.commit("g", {(topic_id(client), 0): CommittedOffset(offset=5, metadata="note")})
    return client


def topic_id(client: GroupClient, name: str = "t") -> bytes:
    return client.broker.topics.by_name[name].id


def ask(
    client: GroupClient,
    topics: list[OffsetFetchRequestTopics] | None,
    version: int = 9,
    group_id: str = "g",
    require_stable: bool = False,
) -> list[OffsetFetchResponsePartitions]:
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    (answer,) = client.post(OffsetFetchRequest(groups=[group], require_stable=require_stable), version)
    return [partition for topic in answer.groups[0].topics for partition in topic.partitions]


def wanted(*partitions: int, name: str = "t", topic_id: bytes = bytes(16)) -> list[OffsetFetchRequestTopics]:
    return [OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(partitions))]


def nothing(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=code)


def test_a_partition_without_a_commit_has_minus_one(client: GroupClient) -> None:
    assert ask(client, wanted(1)) == [nothing(1)]


def test_an_unknown_group_has_no_commits(client: GroupClient) -> None:
    assert ask(client, wanted(0), group_id="other") == [nothing(0)]
    assert ask(client, None, group_id="other") == []


def test_an_unknown_topic_has_no_commit(client: GroupClient) -> None:
    assert ask(client, wanted(0, name="other")) == [nothing(0)]


def test_an_unknown_topic_id_is_refused(client: GroupClient) -> None:
    partitions = ask(client, wanted(0, topic_id=b"?" * 16), version=10)

    assert partitions == [nothing(0, ErrorCode.UNKNOWN_TOPIC_ID)]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_null_topics_ask_for_all_topics(client: GroupClient, version: int) -> None:
    client.broker.groups.commit("g", {(topic_id(client, "u"), 1): CommittedOffset(offset=6)})
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])

    (answer,) = client.post(request, version)

    topics = answer.groups[0].topics
    assert [partition.committed_offset for topic in topics for partition in topic.partitions] == [5, 6]
    if version < 10:
        assert [topic.name for topic in topics] == ["t", "u"]
    else:
        assert [topic.topic_id for topic in topics] == [topic_id(client), topic_id(client, "u")]


@pytest.mark.parametrize("version", [2, 7])
def test_null_topics_of_old_versions_ask_for_all_topics(client: GroupClient, version: int) -> None:
    (answer,) = client.post(OffsetFetchRequest(group_id="g", topics=None), version)

    (topic,) = answer.topics
    assert (topic.name, topic.partitions[0].committed_offset) == ("t", 5)


def test_an_empty_list_of_topics_asks_for_none(client: GroupClient) -> None:
    assert ask(client, []) == []


def test_several_groups_have_separate_answers(client: GroupClient) -> None:
    groups = [OffsetFetchRequestGroup(group_id=name, topics=wanted(0)) for name in ("g", "other")]

    (answer,) = client.post(OffsetFetchRequest(groups=groups), 8)

    assert [group.topics[0].partitions[0].committed_offset for group in answer.groups] == [5, -1]


@pytest.mark.parametrize("version", [7, 8, 10])
def test_offsets_of_an_open_transaction_are_unstable(client: GroupClient, version: int) -> None:
    client.broker.groups.offsets.add_pending(7, "g", {(topic_id(client), 0): CommittedOffset(offset=9)})
    groups = [OffsetFetchRequestGroup(group_id="g", topics=wanted(0, topic_id=topic_id(client)))]
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(group_id="g", topics=topics, groups=groups, require_stable=True)

    (answer,) = client.post(request, version)

    assert first(answer) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)


def test_without_require_stable_the_previous_offset_is_returned(client: GroupClient) -> None:
    client.broker.groups.offsets.add_pending(7, "g", {(topic_id(client), 0): CommittedOffset(offset=9)})

    (partition,) = ask(client, wanted(0))

    assert (partition.error_code, partition.committed_offset) == (0, 5)


def test_a_consumer_member_must_exist_in_the_group(client: GroupClient) -> None:
    client.broker.groups.put(client.broker.groups.consumer_group("modern", 1))
    groups = [
        OffsetFetchRequestGroup(group_id="modern", member_id="m", member_epoch=1, topics=wanted(0)),
        OffsetFetchRequestGroup(group_id="g", topics=wanted(0)),
    ]

    (answer,) = client.post(OffsetFetchRequest(groups=groups), 9)

    assert [group.error_code for group in answer.groups] == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]


def first(answer: OffsetFetchResponse) -> tuple[int, int]:
    """Error code and offset of the only partition, in old and new answers."""
    topics = answer.topics or answer.groups[0].topics
    partition = topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


def test_a_repeated_partition_is_answered_once(client: GroupClient) -> None:
    topics = wanted(0, 1, 0) + wanted(1) + wanted(0, name="u")
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics)] * 2

    (answer,) = client.post(OffsetFetchRequest(groups=groups), 8)

    (group,) = answer.groups
    assert [
        (topic.name, [partition.partition_index for partition in topic.partitions]) for topic in group.topics
    ] == [("t", [0, 1]), ("u", [0])]
