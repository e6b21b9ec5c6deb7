from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from support.broker import BrokerClient, make_broker

VERSIONS = range(ElectLeadersRequest.VERSIONS.first, ElectLeadersRequest.VERSIONS.last + 1)
NOT_NEEDED, UNKNOWN = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 2, {})
    return client


def ask(client: BrokerClient, request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    response = client.send(request, version)
    assert isinstance(response, ElectLeadersResponse)
    return response


def outcomes(response: ElectLeadersResponse) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, row.partition_id, row.error_code)
        for topic in response.replica_election_results
        for row in topic.partition_result
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_election_is_unnecessary(client: BrokerClient, version: int) -> None:
    wanted = [
        TopicPartitions(topic="t", partitions=[0, 2, -1]),
        TopicPartitions(topic="no", partitions=[0]),
    ]

    response = ask(client, ElectLeadersRequest(topic_partitions=wanted), version)

    assert response.error_code == 0
    assert outcomes(response) == [
        ("t", 0, NOT_NEEDED),
        ("t", 2, UNKNOWN),
        ("t", -1, UNKNOWN),
        ("no", 0, UNKNOWN),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_electing_all_partitions_has_no_results(client: BrokerClient, version: int) -> None:
    response = ask(client, ElectLeadersRequest(topic_partitions=None), version)

    assert [topic.topic for topic in response.replica_election_results] == ["t"]
    assert outcomes(response) == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize("version", VERSIONS)
def test_without_time_only_nothing_is_done(client: BrokerClient, version: int, timeout_ms: int) -> None:
    wanted = [TopicPartitions(topic="t", partitions=[0])]

    answers = [
        ask(client, ElectLeadersRequest(topic_partitions=partitions, timeout_ms=timeout_ms), version)
        for partitions in ([], wanted)
    ]

    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert [answer.error_code for answer in answers] == [0, 0 if version == 0 else timed_out]
    assert [outcomes(answer) for answer in answers] == [[], [("t", 0, timed_out)]]


@pytest.mark.parametrize("kind", [2, 7, -1])
def test_an_unknown_election_type_is_refused(client: BrokerClient, kind: int) -> None:
    wanted = [TopicPartitions(topic="t", partitions=[0])]

    response = ask(client, ElectLeadersRequest(election_type=kind, topic_partitions=wanted), 2)

    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert outcomes(response) == [("t", 0, ErrorCode.INVALID_REQUEST)]
