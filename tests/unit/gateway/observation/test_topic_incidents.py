"""A gateway tells the errors of topics in the responses that pass."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.group_incidents import Asked
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.uuid_text import uuid_text
from support.observed import Stage

TOO_LARGE, UNKNOWN, DENIED = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
ORDERS = b"orders".ljust(16, b".")


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[str, int, str, int]] = []

        self.throttles: list[tuple[str, int, int]] = []
        self.members: list[tuple[Asked, int]] = []

    def throttled(self, key: ClientKey, api_key: int, time_ms: int) -> None:
        self.throttles.append((key.client_id, api_key, time_ms))

    def member(self, key: ClientKey, asked: Asked, code: int, pair: object) -> None:
        self.members.append((asked, code))

    def closed(self, pair: object) -> None:
        pass

    def topics(self, key: ClientKey, api_key: int, errors: Iterable[tuple[str, int]]) -> None:
        self.told += [(key.client_id, api_key, *each) for each in errors]


def scene() -> tuple[Stage, Heard]:
    stage, heard = Stage(), Heard()
    stage.observation.incidents = heard
    return stage, heard


def described(*topics: MetadataResponseTopic) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=1, host="broker", port=9092)]
    return MetadataResponse(brokers=brokers, topics=list(topics))


def produced(*errors: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(errors)]
    topic = TopicProduceResponse(name="orders", topic_id=ORDERS, partition_responses=partitions)
    return ProduceResponse(responses=[topic])


@pytest.mark.parametrize("version", range(3, 13))
def test_errors_of_produce_are_told_by_topic(version: int) -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.send(ProduceRequest(acks=1), version)

    pair.answer(produced(0, TOO_LARGE), version)

    assert heard.told == [("orders", 0, "orders", TOO_LARGE)]


def test_the_name_of_a_topic_is_known_from_the_last_metadata() -> None:
    stage, heard = scene()
    pair, other = stage.pair(), stage.pair("other")
    pair.send(MetadataRequest(), 12)
    pair.answer(described(MetadataResponseTopic(name="orders", topic_id=ORDERS)), 12)

    for each in (pair, other):
        each.send(ProduceRequest(acks=1), 13)
        each.answer(produced(TOO_LARGE), 13)

    assert [topic for _, _, topic, _ in heard.told] == ["orders", uuid_text(ORDERS)]


@pytest.mark.parametrize("version", range(14))
def test_errors_of_metadata_are_told_by_topic(version: int) -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.send(MetadataRequest(), version)

    pair.answer(
        described(
            MetadataResponseTopic(name="orders", topic_id=ORDERS),
            MetadataResponseTopic(name="lost", error_code=UNKNOWN),
            MetadataResponseTopic(name="secret", error_code=DENIED),
        ),
        version,
    )

    assert heard.told == [("orders", 3, "lost", UNKNOWN), ("orders", 3, "secret", DENIED)]


def test_responses_without_errors_tell_nothing() -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.send(MetadataRequest(), 12)
    pair.answer(described(MetadataResponseTopic(name="orders", topic_id=ORDERS)), 12)
    pair.send(ProduceRequest(acks=1), 13)
    pair.answer(produced(0, 0), 13)

    assert heard.told == []


def test_the_throttle_times_of_brokers_are_told() -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.send(ProduceRequest(acks=1), 9)
    pair.answer(ProduceResponse(throttle_time_ms=300), 9)
    pair.send(FetchRequest(), 12)
    pair.answer(FetchResponse(throttle_time_ms=200), 12)
    pair.send(PushTelemetryRequest(), 0)
    pair.answer(PushTelemetryResponse(throttle_time_ms=100), 0)

    assert heard.throttles == [("orders", 0, 300), ("orders", 1, 200)]


@pytest.mark.parametrize(("version", "reason"), [(4, None), (9, "rebalance enforced by user")])
def test_what_members_ask_and_are_answered_is_told(version: int, reason: str | None) -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.exchange(JoinGroupRequest(group_id="g"), JoinGroupResponse(error_code=79, member_id="m"), version)
    again = JoinGroupRequest(group_id="g", member_id="m", reason=reason)
    pair.exchange(again, JoinGroupResponse(member_id="m"), version)
    pair.exchange(HeartbeatRequest(group_id="g", member_id="m"), HeartbeatResponse(error_code=25), 3)
    leaving = MemberIdentity(member_id="m", reason="the consumer is being closed")
    pair.exchange(LeaveGroupRequest(group_id="g", members=[leaving]), LeaveGroupResponse(), 5)
    pair.exchange(
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="n", member_epoch=-1),
        ConsumerGroupHeartbeatResponse(),
        1,
    )

    found = [(each.api_key, each.member_id, each.epoch, each.reason, code) for each, code in heard.members]
    assert found == [
        (11, "", 0, None, 79),
        (11, "m", 0, reason, 0),
        (12, "m", 0, None, 25),
        (13, "m", 0, "the consumer is being closed", 0),
        (68, "n", -1, None, 0),
    ]


def test_a_malformed_response_tells_nothing() -> None:
    stage, heard = scene()
    pair = stage.pair()
    pair.send(MetadataRequest(), 12)

    pair.observer.outcome(3, 12, 20, b"\0\0\0\1" + b"\xff" * 16, 0)

    assert heard.told == []
