from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.authorized_operations import NOT_ASKED_FOR, TOPIC_OPERATIONS
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from support.broker import BrokerClient, make_broker

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(scope="module")
def client() -> BrokerClient:
    client = BrokerClient(make_broker())
    for name, partitions in (("c", 1), ("a", 3), ("b", 2)):
        client.broker.topics.create(name, partitions, {})
    return client


def ask(client: BrokerClient, *names: str, **fields: Any) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names], **fields)
    response = client.send(request)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def shown(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int, list[int]]]:
    """Name, error and partitions of each topic."""
    return [
        (topic.name, topic.error_code, [row.partition_index for row in topic.partitions])
        for topic in response.topics
    ]


def following(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_a_partition_names_its_replicas(client: BrokerClient) -> None:
    response = ask(client, "c")

    (topic,) = response.topics
    (partition,) = topic.partitions
    assert topic.topic_id == client.broker.topics.by_name["c"].id
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, TOPIC_OPERATIONS)
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert following(response) is None


def test_topics_are_sorted_by_name_and_listed_once(client: BrokerClient) -> None:
    response = ask(client, "c", "b", "nope", "b", "a b")

    assert shown(response) == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
        ("b", 0, [0, 1]),
        ("c", 0, [0]),
        ("nope", UNKNOWN, []),
    ]


def test_no_names_ask_for_all_topics(client: BrokerClient) -> None:
    response = ask(client)

    assert shown(response) == [("a", 0, [0, 1, 2]), ("b", 0, [0, 1]), ("c", 0, [0])]


@pytest.mark.parametrize(
    ("limit", "expected", "then"),
    [
        (2, [("a", 0, [0, 1])], ("a", 2)),
        (3, [("a", 0, [0, 1, 2])], ("b", 0)),
        (4, [("a", 0, [0, 1, 2]), ("b", 0, [0])], ("b", 1)),
        (6, [("a", 0, [0, 1, 2]), ("b", 0, [0, 1]), ("c", 0, [0])], None),
        (0, [("a", 0, [0])], ("a", 1)),
        (-5, [("a", 0, [0])], ("a", 1)),
    ],
)
def test_a_page_ends_with_the_cursor_of_the_next(
    client: BrokerClient, limit: int, expected: list[Any], then: tuple[str, int] | None
) -> None:
    response = ask(client, response_partition_limit=limit)

    assert shown(response) == expected
    assert following(response) == then


@pytest.mark.parametrize("limit", range(1, 8))
def test_all_pages_together_are_complete(client: BrokerClient, limit: int) -> None:
    found: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    for _ in range(10):
        response = ask(client, response_partition_limit=limit, cursor=cursor)
        found += [(name, index) for name, _, indexes in shown(response) for index in indexes]
        cursor = response.next_cursor
        if cursor is None:
            break

    assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]


def test_an_unknown_topic_does_not_count_towards_the_limit(client: BrokerClient) -> None:
    response = ask(client, "a", "aa", "b", response_partition_limit=3)

    assert shown(response) == [("a", 0, [0, 1, 2])]
    assert following(response) == ("aa", 0)


def test_the_host_has_its_own_limit() -> None:
    client = BrokerClient(make_broker())
    for name in ("x", "y", "z"):
        client.broker.topics.create(name, 700, {})

    response = ask(client, response_partition_limit=2**31 - 1)

    assert sum(len(indexes) for _, _, indexes in shown(response)) == 2000
    assert following(response) == ("z", 600)


@pytest.mark.parametrize(
    ("names", "cursor", "expected"),
    [
        (["a"], ("a", 2), [("a", 0, [2])]),
        (["a", "b"], ("b", 1), [("b", 0, [1])]),
        ([], ("aa", 7), [("b", 0, [0, 1]), ("c", 0, [0])]),
        (["a"], ("a", 3), [("a", 0, [])]),
        (["a"], ("a", 2**31 - 1), [("a", 0, [])]),
    ],
)
def test_a_cursor_may_start_inside_a_topic(
    client: BrokerClient, names: list[str], cursor: tuple[str, int], expected: list[Any]
) -> None:
    name, index = cursor

    response = ask(client, *names, cursor=Cursor(topic_name=name, partition_index=index))

    assert shown(response) == expected
    assert following(response) is None


@pytest.mark.parametrize("cursor", [("b", 0), ("", 0), ("a", -1)])
def test_an_invalid_cursor_is_refused(client: BrokerClient, cursor: tuple[str, int]) -> None:
    response = ask(client, "a", "c", cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]))

    assert shown(response) == [("a", ErrorCode.INVALID_REQUEST, []), ("c", ErrorCode.INVALID_REQUEST, [])]
    assert response.topics[0].topic_authorized_operations == NOT_ASKED_FOR
