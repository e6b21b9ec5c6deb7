"""Errors of topics that a host answers are told with client, topic and error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.findings.incidents import TOPIC_ERRORS, TOPIC_REFUSALS, UNKNOWN_TOPICS
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.incidents import Incidents
from odradek.telemetry.topic_errors import note_topic_error
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.uuid_text import uuid_text
from support.batches import batch_of
from support.broker import BrokerClient, make_broker

NOWHERE = b"?" * 16


class Heard:
    """Takes the place of `Incidents`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []
        self.keys: set[ClientKey] = set()

    def add(self, key: ClientKey, metric: str, labels: Mapping[str, str], **_: Any) -> None:
        self.keys.add(key)
        self.told.append((metric, dict(labels)))


class Scene:
    def __init__(self, **settings: Any) -> None:
        self.client = BrokerClient(make_broker(settings=BrokerSettings(**settings)))
        self.client.broker.topics.create("orders", 1, {"max.message.bytes": "200"})
        self.heard = Heard()
        self.client.broker.incidents = cast(Incidents, self.heard)

    def produce(self, name: str, version: int, size: int = 1, topic_id: bytes = bytes(16)) -> None:
        partition = PartitionProduceData(index=0, records=batch_of(b"v" * size))
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[partition])
        self.client.send(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), version)

    def ask(self, name: str | None, version: int = 12, topic_id: bytes = bytes(16)) -> None:
        topic = MetadataRequestTopic(name=name, topic_id=topic_id)
        self.client.send(MetadataRequest(topics=[topic], allow_auto_topic_creation=True), version)

    @property
    def told(self) -> list[tuple[str, dict[str, str]]]:
        return list(self.heard.told)


def test_a_message_that_is_too_large_is_refused() -> None:
    scene = Scene()
    topic_id = scene.client.broker.topics.by_name["orders"].id

    scene.produce("orders", 9, size=1_000)
    scene.produce("", 13, size=1_000, topic_id=topic_id)

    labels = {"api": "Produce", "topic": "orders", "error": "MESSAGE_TOO_LARGE"}
    assert scene.told == [(TOPIC_REFUSALS, labels)] * 2
    (key,) = scene.heard.keys
    assert (key.principal, key.client_id) == ("User:ANONYMOUS", scene.client.client_id)


def test_records_that_are_stored_tell_nothing() -> None:
    scene = Scene()

    scene.produce("orders", 9)
    scene.ask("orders")

    assert scene.told == []


def test_a_topic_that_does_not_exist_is_told_by_name_or_id() -> None:
    scene = Scene(auto_create_topics_enable=False)

    scene.produce("lost", 9)
    scene.produce("", 13, topic_id=NOWHERE)
    scene.ask("lost")
    scene.ask(None, topic_id=NOWHERE)

    named = uuid_text(NOWHERE)
    assert scene.told == [
        (UNKNOWN_TOPICS, {"api": api, "topic": topic})
        for api, topic in (("Produce", "lost"), ("Produce", named), ("Metadata", "lost"), ("Metadata", named))
    ]


def test_a_topic_that_is_created_by_the_question_is_not_told() -> None:
    scene = Scene(auto_create_topics_enable=True)

    scene.ask("new")

    assert "new" in scene.client.broker.topics.by_name
    assert scene.told == []


def test_an_illegal_name_is_refused() -> None:
    scene = Scene()

    scene.ask("no spaces allowed")

    (told,) = scene.told
    labels = {"api": "Metadata", "topic": "no spaces allowed", "error": "INVALID_TOPIC_EXCEPTION"}
    assert told == (TOPIC_REFUSALS, labels)


@pytest.mark.parametrize(
    ("code", "metric"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_REFUSALS),
        (ErrorCode.NOT_ENOUGH_REPLICAS, TOPIC_ERRORS),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, TOPIC_ERRORS),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, TOPIC_ERRORS),
        (ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_TOPICS),
        (4_711, TOPIC_REFUSALS),
    ],
)
def test_an_error_is_sorted_by_what_clients_make_of_it(code: int, metric: str) -> None:
    heard = Heard()

    note_topic_error(cast(Incidents, heard), ClientKey("", "", "", "", ""), 0, code, "orders")

    assert [each for each, _ in heard.told] == [metric]


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER])
def test_a_success_is_not_told(code: int) -> None:
    heard = Heard()

    note_topic_error(cast(Incidents, heard), ClientKey("", "", "", "", ""), 0, code, "orders")

    assert heard.told == []
