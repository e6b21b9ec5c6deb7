"""Creating and deleting partitions is charged (KIP-599), after Kafka's ControllerMutationQuotaTest.

A rate of two partitions per second over ten windows: twenty partitions may be created at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.quota_client import SLOW_NS, QuotaClient

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
MESSAGE = "The throttling quota has been exceeded."
TOPICS = ("one", "two")
Change = Callable[..., Any]


@pytest.fixture
def client() -> QuotaClient:
    return QuotaClient(samples=10)


def create(
    client: QuotaClient, topics: Sequence[str] = TOPICS, version: int = 7, *, validate_only: bool = False
) -> Any:
    wanted = [CreatableTopic(name=name, num_partitions=30, replication_factor=1) for name in topics]
    return client.send(CreateTopicsRequest(topics=wanted, validate_only=validate_only), version)


def delete(client: QuotaClient, topics: Sequence[str] = TOPICS, version: int = 6) -> Any:
    if version < 6:
        return client.send(DeleteTopicsRequest(topic_names=list(topics), timeout_ms=1_000), version)
    states = [DeleteTopicState(name=name) for name in topics]
    return client.send(DeleteTopicsRequest(topics=states, timeout_ms=1_000), version)


def grow(
    client: QuotaClient, topics: Sequence[str] = TOPICS, version: int = 3, *, validate_only: bool = False
) -> Any:
    wanted = [CreatePartitionsTopic(name=name, count=31, assignments=None) for name in topics]
    request = CreatePartitionsRequest(topics=wanted, timeout_ms=1_000, validate_only=validate_only)
    return client.send(request, version)


def prepare(client: QuotaClient, change: Change) -> None:
    """Create the topics that the change needs."""
    partitions = {create: 0, delete: 30, grow: 1}[change]
    for name in TOPICS if partitions else ():
        client.client.broker.topics.create(name, partitions, {})


def items(response: Any) -> list[Any]:
    """The error code of each topic."""
    for field in ("topics", "responses", "results"):
        found: list[Any] | None = getattr(response, field, None)
        if found is not None:
            return found
    raise AssertionError(response)


def codes(response: Any) -> dict[str, int]:
    return {item.name: item.error_code for item in items(response)}


@pytest.mark.parametrize("change", [
    pytest.param(create, id="create"), pytest.param(delete, id="delete"),
    pytest.param(grow, id="grow"),
])  # fmt: skip
def test_in_strict_versions_the_excess_is_refused(client: QuotaClient, change: Change) -> None:
    prepare(client, change)
    client.limit(controller_mutation_rate=2)

    response = change(client)
    refused = [item for item in items(response) if item.error_code]
    client.clock.advance(response.throttle_time_ms)
    again = change(client, [item.name for item in refused])

    assert sorted(codes(response).values()) == [0, EXCEEDED]
    assert [item.error_message for item in refused] == [MESSAGE]
    assert response.throttle_time_ms == 5000  # ten partitions too many, at two per second
    assert client.quotas.controller_mutation.queue_size(client.clock.now_ms()) == 0
    assert (list(codes(again).values()), again.throttle_time_ms) == ([0], 0)


@pytest.mark.parametrize("version", [4, 5])
def test_create_before_v6_is_throttled_and_not_refused(client: QuotaClient, version: int) -> None:
    client.limit(controller_mutation_rate=2)

    response = create(client, version=version)

    assert codes(response) == {"one": 0, "two": 0}
    assert response.throttle_time_ms == client.muted_ms == 20_000
    assert [item.error_message for item in items(response)] == [None, None]


@pytest.mark.parametrize("version", [3, 4])
def test_delete_before_v5_is_throttled_and_not_refused(client: QuotaClient, version: int) -> None:
    prepare(client, delete)
    client.limit(controller_mutation_rate=2)

    response = delete(client, version=version)

    assert codes(response) == {"one": 0, "two": 0}
    assert response.throttle_time_ms == client.muted_ms == 20_000


@pytest.mark.parametrize("version", [1, 2])
def test_create_partitions_before_v3_is_throttled_and_not_refused(client: QuotaClient, version: int) -> None:
    prepare(client, grow)
    client.limit(controller_mutation_rate=2)

    response = grow(client, version=version)

    assert codes(response) == {"one": 0, "two": 0}
    assert response.throttle_time_ms == client.muted_ms == 20_000


@pytest.mark.parametrize("change", [
    pytest.param(create, id="create"), pytest.param(delete, id="delete"),
    pytest.param(grow, id="grow"),
])  # fmt: skip
def test_without_a_quota_no_topic_is_refused(client: QuotaClient, change: Change) -> None:
    prepare(client, change)

    response = change(client)

    assert codes(response) == {"one": 0, "two": 0}
    assert (response.throttle_time_ms, client.muted_ms) == (0, 0)


@pytest.mark.parametrize("change", [
    pytest.param(create, id="create"), pytest.param(grow, id="grow"),
])  # fmt: skip
def test_validate_only_is_charged_the_same(client: QuotaClient, change: Change) -> None:
    prepare(client, change)
    client.limit(controller_mutation_rate=2)

    first = change(client, ["one"], validate_only=True)
    second = change(client, ["one"], validate_only=True)

    assert codes(first) == {"one": 0}
    assert codes(second) == {"one": EXCEEDED}
    assert second.throttle_time_ms == 5000


def test_an_invalid_topic_is_not_charged(client: QuotaClient) -> None:
    client.limit(controller_mutation_rate=2)
    client.client.broker.topics.create("there", 30, {})
    before = client.metric("tokens", "ControllerMutation")

    wrong = [create(client, ["there"]), create(client, ["twice", "twice"]), create(client, ["not/a/name"]),
             delete(client, ["nowhere"]), grow(client, ["nowhere"])]  # fmt: skip

    assert all(code not in (0, EXCEEDED) for response in wrong for code in codes(response).values())
    assert before == 0  # the bucket does not exist yet
    assert client.metric("tokens", "ControllerMutation") == 20
    assert client.muted_ms == 0


def test_topics_after_a_refused_one_are_tried(client: QuotaClient) -> None:
    client.limit(controller_mutation_rate=2)

    response = create(client, ["one", "two", "three", "one more"])

    assert codes(response) == {
        "one": 0,
        "two": EXCEEDED,
        "three": EXCEEDED,
        "one more": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_refused_creation_leaves_nothing_behind(client: QuotaClient) -> None:
    client.limit(controller_mutation_rate=2)

    create(client)

    assert [name in client.client.broker.topics.by_name for name in TOPICS] == [True, False]


def test_a_refused_deletion_keeps_the_topic(client: QuotaClient) -> None:
    prepare(client, delete)
    client.limit(controller_mutation_rate=2)

    delete(client)

    assert len([name for name in TOPICS if name in client.client.broker.topics.by_name]) == 1


def test_the_longer_throttle_applies_and_the_shorter_does_not(client: QuotaClient) -> None:
    # On a single node no request is forwarded, so the node that computes the longer throttle also mutes.
    client.limit(controller_mutation_rate=2, request_percentage=0.01)
    client.handler_ns = SLOW_NS

    create(client, ["one"])
    time_alone = (client.muted_by, client.muted_ms)
    create(client, ["two"])

    assert time_alone == ("Request", 1000)
    assert (client.muted_by, client.muted_ms) == ("ControllerMutation", 5000)


def test_auto_created_topics_are_not_charged(client: QuotaClient) -> None:
    client.limit(controller_mutation_rate=1)
    names = [f"new-{number}" for number in range(50)]

    response = client.send(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]), 12)

    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert client.muted_ms == 0
