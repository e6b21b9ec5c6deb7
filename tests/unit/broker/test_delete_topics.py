from __future__ import annotations

from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.types import NIL_UUID
from support.broker import BrokerClient

NOWHERE = b"?" * 16
INVALID, UNKNOWN = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def client() -> BrokerClient:
    """Topics ``a`` and ``b``."""
    client = BrokerClient()
    client.broker.topics.create("a", 2, {"retention.ms": "5"})
    client.broker.topics.create("b", 1, {})
    return client


def ask(client: BrokerClient, *states: DeleteTopicState) -> list[tuple[str | None, int]]:
    return codes(client.send(DeleteTopicsRequest(topics=list(states), timeout_ms=1_000), 6))


def codes(response: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.responses]


def left(client: BrokerClient) -> list[str]:
    return [topic.name for topic in client.broker.topics]


def by_id(client: BrokerClient, name: str) -> DeleteTopicState:
    return DeleteTopicState(topic_id=client.broker.topics.by_name[name].id)


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


@pytest.mark.parametrize("version", range(1, 6))
def test_before_version_6_topics_are_deleted_by_name(client: BrokerClient, version: int) -> None:
    request = DeleteTopicsRequest(topic_names=["a", "nowhere", "nowhere"], timeout_ms=1_000)

    response = client.send(request, version)

    assert codes(response) == [("a", 0), ("nowhere", INVALID)]
    assert left(client) == ["b"]


def test_version_6_answers_with_name_and_id_for_both_forms(client: BrokerClient) -> None:
    ids = [client.broker.topics.by_name[name].id for name in ("a", "b")]
    request = DeleteTopicsRequest(topics=[by_name("a"), by_id(client, "b")], timeout_ms=1_000)

    response = client.send(request, 6)

    assert codes(response) == [("a", 0), ("b", 0)]
    assert [topic.topic_id for topic in response.responses] == ids
    assert left(client) == []


def test_an_unknown_topic_does_not_affect_the_others(client: BrokerClient) -> None:
    answers = ask(client, by_name("nowhere"), DeleteTopicState(topic_id=NOWHERE), by_name("a"))

    assert answers == [("nowhere", UNKNOWN), (None, ErrorCode.UNKNOWN_TOPIC_ID), ("a", 0)]
    assert left(client) == ["b"]


def test_exactly_one_of_name_and_id_is_required(client: BrokerClient) -> None:
    both = DeleteTopicState(name="a", topic_id=client.broker.topics.by_name["a"].id)

    answers = ask(client, both, DeleteTopicState(name=None, topic_id=NIL_UUID))

    assert answers == [("a", INVALID), (None, INVALID)]
    assert left(client) == ["a", "b"]


def test_a_topic_named_twice_is_not_deleted(client: BrokerClient) -> None:
    answers = ask(client, by_name("a"), by_name("a"), by_name("b"))

    assert answers == [("a", INVALID), ("b", 0)]
    assert left(client) == ["a"]


def test_a_topic_given_by_name_and_by_id_is_not_deleted(client: BrokerClient) -> None:
    answers = ask(client, by_name("a"), by_id(client, "a"), by_name("b"))

    assert answers == [("a", INVALID), ("b", 0)]
    assert left(client) == ["a"]


def test_a_deleted_topic_is_unknown(client: BrokerClient) -> None:
    ask(client, by_name("a"))

    answers = ask(client, by_name("a"))

    assert answers == [("a", UNKNOWN)]


def test_the_configuration_is_deleted_with_the_topic(client: BrokerClient) -> None:
    ask(client, by_name("a"))

    again = client.broker.topics.create("a", 1, {})

    assert again.config.retention_ms == client.broker.topics.defaults.retention_ms


def test_an_empty_request_has_an_empty_answer(client: BrokerClient) -> None:
    answers = ask(client)

    assert answers == []
    assert left(client) == ["a", "b"]
