"""Topics are created once; a failure to create one is reported with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from odradek.plugin import Retry
from odradek_kafka.kafka_forwarder import KafkaForwarder
from odradek_kafka.kafka_settings import KafkaSettings
from odradek_kafka.topic_maker import TopicMaker

Kit = Any
"""From conftest."""


class FakeAdmin:
    """Answers CreateTopics with scripted results, by topic."""

    def __init__(self, **answers: Exception) -> None:
        self.answers = answers
        self.calls: list[list[Any]] = []

    def __call__(self, options: dict[str, str], **callbacks: Any) -> FakeAdmin:
        return self

    def create_topics(self, topics: Sequence[Any], request_timeout: float) -> dict[str, Future[None]]:
        self.calls.append(list(topics))
        return {topic.topic: self.answer(topic.topic) for topic in topics}

    def answer(self, topic: str) -> Future[None]:
        future: Future[None] = Future()
        if topic in self.answers:
            future.set_exception(self.answers[topic])
        else:
            future.set_result(None)
        return future


def ensured(admin: FakeAdmin, *calls: set[str], **fields: Any) -> list[str | None]:
    async def run() -> list[str | None]:
        maker = TopicMaker(KafkaSettings(options={}, **fields), admin)
        return [await maker.ensure(topics, 1.0) for topics in calls]

    return asyncio.run(run())


def test_each_topic_is_created_once() -> None:
    admin = FakeAdmin()

    problems = ensured(admin, {"b", "a"}, {"a"}, {"a", "c"})

    assert problems == [None, None, None]
    assert [[topic.topic for topic in call] for call in admin.calls] == [["a", "b"], ["c"]]


def test_the_liveness_topic_is_compacted() -> None:
    admin = FakeAdmin()

    ensured(admin, {"a", "alive"}, liveness_topic="alive", topic_partitions=3, topic_replication_factor=2)

    plain, compacted = admin.calls[0]
    assert (plain.config, compacted.config) == ({}, {"cleanup.policy": "compact"})
    assert (plain.num_partitions, plain.replication_factor) == (3, 2)


@pytest.mark.parametrize(
    "name", ["TOPIC_ALREADY_EXISTS", "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"]
)
def test_a_topic_whose_creation_may_have_succeeded_is_used(kit: Kit, name: str) -> None:
    admin = FakeAdmin(a=kit.raised(kit.error(name)))

    problems = ensured(admin, {"a"}, {"a"})

    assert problems == [None, None]
    assert len(admin.calls) == 1


def test_a_topic_that_cannot_be_created_is_named_and_tried_again(kit: Kit) -> None:
    admin = FakeAdmin(b=kit.raised(kit.error("INVALID_REPLICATION_FACTOR")))

    problems = ensured(admin, {"a", "b"}, {"b"})

    wanted = "topic b cannot be created: INVALID_REPLICATION_FACTOR: INVALID_REPLICATION_FACTOR it is"
    assert problems == [wanted, wanted]
    assert len(admin.calls) == 2


def test_topics_are_not_created_if_disabled() -> None:
    admin = FakeAdmin()

    problems = ensured(admin, {"a"}, topic_create=False)

    assert problems == [None]
    assert admin.calls == []


def test_a_topic_that_cannot_be_created_is_a_retry_and_nothing_is_sent(kit: Kit) -> None:
    settings = KafkaSettings(options={})
    admin = FakeAdmin(client_telemetry=kit.raised(kit.error("POLICY_VIOLATION")))
    forwarder = KafkaForwarder(settings, maker=TopicMaker(settings, admin))

    with pytest.raises(Retry, match="topic client_telemetry cannot be created: POLICY_VIOLATION"):
        asyncio.run(forwarder.deliver([kit.record()]))


def test_after_a_failure_topics_are_checked_again(kit: Kit) -> None:
    admin = FakeAdmin()

    async def run() -> None:
        maker = TopicMaker(KafkaSettings(options={}), admin)
        await maker.ensure({"a"}, 1.0)
        maker.forget(["a"])
        await maker.ensure({"a"}, 1.0)

    asyncio.run(run())

    assert len(admin.calls) == 2
