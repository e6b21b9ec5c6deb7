"""What handlers do with the answers of an authorizer, beyond single requests: sessions, waits, creations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.dispatch.routes import CloseConnection
from odradek.plugin.authorizer import AclOperation, Action, ResourceType
from odradek.testing.clock import MockClock
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker, make_connection
from support.grants import Grants, grant

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NOT_YET = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
"""Of a topic that has just been created: the client asks again."""
READ_T = grant("READ TOPIC t")


class Caller:
    """A client with some rights, and topics ``t`` and ``u`` with two partitions each."""

    def __init__(self, *grants: str) -> None:
        self.grants = Grants(grants)
        broker = make_broker(authorizer=self.grants)
        self.client = BrokerClient(broker, replace(make_connection(), principal="User:limited"))
        self.topics = broker.topics
        for name in ("t", "u"):
            self.topics.create(name, 2, {})

    def fetch_request(self, session_id: int, epoch: int, *names: str, **fields: Any) -> FetchRequest:
        partitions = [FetchPartition(partition=index, partition_max_bytes=1_000) for index in (0, 1)]
        topics = [FetchTopic(topic=name, partitions=partitions) for name in names]
        return FetchRequest(
            session_id=session_id, session_epoch=epoch, max_bytes=1_000, topics=topics, **fields
        )

    def fetch(self, session_id: int, epoch: int, *names: str) -> FetchResponse:
        response: FetchResponse = self.client.send(self.fetch_request(session_id, epoch, *names), 12)
        return response

    def produce(self, *names: str, acks: int = -1) -> Any:
        data = [
            TopicProduceData(
                name=name,
                partition_data=[
                    PartitionProduceData(index=index, records=batch_of(b"x")) for index in (0, 1)
                ],
            )
            for name in names
        ]
        return self.client.send(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=data), 12)

    def written(self, name: str) -> list[int]:
        return [log.log_end_offset for log in self.topics.by_name[name].partitions]


def told(response: FetchResponse) -> dict[tuple[str, int], int]:
    """The error of each partition that a response names."""
    return {
        (topic.topic, partition.partition_index): partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    }


def test_a_right_that_is_withdrawn_shows_at_the_next_fetch_of_the_session() -> None:
    caller = Caller("READ TOPIC t")
    opened = caller.fetch(0, 0, "t", "u")
    assert told(opened) == {("t", 0): 0, ("t", 1): 0, ("u", 0): REFUSED, ("u", 1): REFUSED}

    caller.grants.granted.clear()
    without = caller.fetch(opened.session_id, 1)
    caller.grants.granted.add(READ_T)
    again = caller.fetch(opened.session_id, 2)
    unchanged = caller.fetch(opened.session_id, 3)

    refused = {("u", 0): REFUSED, ("u", 1): REFUSED}
    assert told(without) == {("t", 0): REFUSED, ("t", 1): REFUSED, **refused}
    assert told(again) == {("t", 0): 0, ("t", 1): 0, **refused}
    assert told(unchanged) == refused


def test_records_appended_after_a_right_was_withdrawn_reach_only_the_fetch_that_waits() -> None:
    caller = Caller("READ TOPIC t")
    answer = caller.client.defer(caller.fetch_request(0, -1, "t", "u", min_bytes=1, max_wait_ms=1_000), 12)
    assert answer() is None

    caller.grants.granted.clear()
    caller.topics.log("t", 0).append(batch_of(b"x"), now_ms=NOW_MS)

    assert told(answer()) == {("t", 0): 0, ("t", 1): 0, ("u", 0): REFUSED, ("u", 1): REFUSED}
    assert told(caller.fetch(0, -1, "t")) == {("t", 0): REFUSED, ("t", 1): REFUSED}


def test_a_fetch_of_refused_topics_only_does_not_wait() -> None:
    caller = Caller()

    response = caller.client.send(caller.fetch_request(0, -1, "t", min_bytes=1, max_wait_ms=1_000), 12)

    assert told(response) == {("t", 0): REFUSED, ("t", 1): REFUSED}


def test_each_topic_is_asked_once_whatever_the_number_of_its_partitions() -> None:
    caller = Caller("READ TOPIC t", "WRITE TOPIC t")

    caller.fetch(0, -1, "t", "u")
    caller.produce("t", "u")

    kinds = [(action.operation, action.name) for action in caller.grants.asked]
    assert kinds == [
        (AclOperation.READ, "t"),
        (AclOperation.READ, "u"),
        (AclOperation.WRITE, "t"),
        (AclOperation.WRITE, "u"),
    ]


def test_a_refused_producer_writes_nothing_and_the_others_are_served() -> None:
    caller = Caller("WRITE TOPIC t")

    response = caller.produce("u", "t")

    assert [
        [partition.error_code for partition in topic.partition_responses] for topic in response.responses
    ] == [[REFUSED, REFUSED], [0, 0]]
    assert (caller.written("t"), caller.written("u")) == ([1, 1], [0, 0])


def test_a_refused_producer_without_acknowledgments_is_disconnected() -> None:
    caller = Caller("WRITE TOPIC t")

    assert caller.produce("t", acks=0) is None
    with pytest.raises(CloseConnection):
        caller.produce("u", acks=0)


@pytest.mark.parametrize(
    ("grants", "code", "exists"),
    [
        (["DESCRIBE TOPIC new", "CREATE TOPIC new"], NOT_YET, True),
        (["DESCRIBE TOPIC new", "CREATE CLUSTER"], NOT_YET, True),
        (["DESCRIBE TOPIC new"], REFUSED, False),
        (["CREATE TOPIC new", "CREATE CLUSTER"], REFUSED, False),
    ],
    ids=["CREATE of the topic", "CREATE of the cluster", "no CREATE", "no DESCRIBE"],
)
def test_metadata_creates_a_topic_only_with_the_right_to(grants: list[str], code: int, exists: bool) -> None:
    caller = Caller(*grants)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)

    response = caller.client.send(request, 12)

    assert [topic.error_code for topic in response.topics] == [code]
    assert ("new" in caller.topics.by_name) == exists


def test_a_topic_that_appears_later_is_matched_if_the_member_may_see_it() -> None:
    caller = Caller("READ GROUP g", "DESCRIBE TOPIC t", "DESCRIBE TOPIC t2")
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex=".*",
        topic_partitions=[],
    )
    joined = caller.client.send(join, 1)
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=joined.member_epoch, topic_partitions=[]
    )
    matched = caller.client.send(heartbeat, 1)
    heartbeat.member_epoch = matched.member_epoch
    assert assigned(matched) == {caller.topics.by_name["t"].id}

    for name in ("t2", "u2"):
        caller.topics.create(name, 1, {})
    clock = caller.client.broker.clock
    assert isinstance(clock, MockClock)
    clock.advance(10_000)

    changed = caller.client.send(heartbeat, 1)

    assert assigned(changed) == {caller.topics.by_name[name].id for name in ("t", "t2")}


def test_a_member_loses_a_topic_that_it_may_no_longer_see_when_expressions_are_matched_again() -> None:
    caller = Caller("READ GROUP g", "DESCRIBE TOPIC t", "DESCRIBE TOPIC u")
    clock = caller.client.broker.clock
    assert isinstance(clock, MockClock)
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=".*",
        topic_partitions=[],
    )
    joined = caller.client.send(join, 1)
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=joined.member_epoch)
    matched = caller.client.send(heartbeat, 1)
    heartbeat.member_epoch = matched.member_epoch
    caller.grants.granted.discard(grant("DESCRIBE TOPIC u"))

    changes = []
    for _ in range(61):
        clock.advance(10_000)
        response = caller.client.send(heartbeat, 1)
        heartbeat.member_epoch = response.member_epoch
        if response.assignment is not None:
            changes.append((clock.monotonic_ms(), assigned(response)))

    topics = caller.topics.by_name
    assert assigned(matched) == {topics["t"].id, topics["u"].id}
    assert [found for _, found in changes] == [{topics["t"].id}]


def assigned(response: Any) -> set[bytes]:
    return {topic.topic_id for topic in response.assignment.topic_partitions}


def test_denials_are_reported_except_those_that_only_hide() -> None:
    caller = Caller()
    authorization = caller.client.broker.authorization
    assert authorization.is_enabled
    denied: list[Action] = []
    authorization.denied = lambda _context, action, _decision: denied.append(action)

    caller.client.send(MetadataRequest(topics=None), 12)
    caller.client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)

    assert denied == [Action(AclOperation.DESCRIBE, ResourceType.TOPIC, "t")]
