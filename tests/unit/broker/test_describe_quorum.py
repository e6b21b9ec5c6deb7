from __future__ import annotations

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from support.broker import BrokerClient, make_broker

VERSIONS = range(DescribeQuorumRequest.VERSIONS.first, DescribeQuorumRequest.VERSIONS.last + 1)


def ask(version: int, *topics: tuple[str, list[int]]) -> DescribeQuorumResponse:
    request = DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name=name, partitions=[RequestPartitionData(partition_index=index) for index in indexes]
            )
            for name, indexes in topics
        ]
    )
    response = BrokerClient(make_broker()).send(request, version)
    assert isinstance(response, DescribeQuorumResponse)
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_this_node_is_the_whole_quorum(version: int) -> None:
    response = ask(version, ("__cluster_metadata", [0]))

    (partition,) = response.topics[0].partitions
    (voter,) = partition.current_voters
    assert (response.error_code, partition.error_code, partition.leader_id) == (0, 0, 1)
    assert (voter.replica_id, voter.log_end_offset, partition.observers) == (1, partition.high_watermark, [])
    assert (voter.last_caught_up_timestamp > 0) == (version >= 1)


def test_version_2_returns_the_address_of_the_voter() -> None:
    response = ask(2, ("__cluster_metadata", [0]))

    (node,) = response.nodes
    (listener,) = node.listeners
    assert (node.node_id, listener.host, listener.port) == (1, "127.0.0.1", 9092)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "topics",
    [
        [("t", [0])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [0]), ("t", [0])],
    ],
)
def test_another_partition_has_no_quorum(version: int, topics: list[tuple[str, list[int]]]) -> None:
    response = ask(version, *topics)

    codes = {row.error_code for topic in response.topics for row in topic.partitions}
    assert (response.error_code, codes) == (0, {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    assert response.nodes == []


def test_an_empty_request_has_an_empty_answer() -> None:
    response = ask(2)

    assert (response.error_code, response.topics) == (0, [])
