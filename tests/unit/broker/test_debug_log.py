"""The log at ``--log-level debug``: refused requests, joins and rebalances."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.group_client import REBALANCE_MS, SESSION_MS, GroupClient


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def said(lines: pytest.LogCaptureFixture, **fields: object) -> list[str]:
    """The messages of the lines with these fields."""
    return [line.getMessage() for line in lines.records if fields.items() <= vars(line).items()]


def about(lines: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(line) for line in lines.records if line.getMessage() == message]


UNKNOWN_TOPIC = MetadataRequest(
    topics=[MetadataRequestTopic(name="nowhere")], allow_auto_topic_creation=False
)


def test_a_refused_request_is_a_line_with_its_client_and_the_reasons(lines: pytest.LogCaptureFixture) -> None:
    client = GroupClient()
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "..", "b/")]

    client.send(CreateTopicsRequest(topics=topics))
    client.send(UNKNOWN_TOPIC)
    client.send(DescribeClusterRequest())

    first, second = about(lines, "answered a request with an error")
    assert (first["api"], first["client_id"], first["principal"]) == (
        "CreateTopics",
        "test",
        "User:ANONYMOUS",
    )
    assert first["errors"] == ["INVALID_TOPIC_EXCEPTION*2"]
    assert (second["api"], second["errors"]) == ("Metadata", ["UNKNOWN_TOPIC_OR_PARTITION"])


def test_an_answer_that_comes_later_is_logged_too(lines: pytest.LogCaptureFixture) -> None:
    client = GroupClient()
    client.post(client.joining(member_id=client.member_id()))
    client.post(client.joining(group_id="g", protocol_type="other"))

    refused = about(lines, "answered a request with an error")

    assert [row["errors"] for row in refused] == [["MEMBER_ID_REQUIRED"], ["INCONSISTENT_GROUP_PROTOCOL"]]


def test_nothing_is_logged_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client = GroupClient()

    client.stable_group(members=2)
    client.send(UNKNOWN_TOPIC)

    assert caplog.records == []


def test_a_classic_group_tells_joins_rebalances_and_departures(lines: pytest.LogCaptureFixture) -> None:
    client = GroupClient()

    client.stable_group(members=2)
    client.clock.advance(SESSION_MS + REBALANCE_MS)

    assert said(lines, group="g")[:5] == [
        "member joined",
        "rebalance begins",
        "member joined",
        "generation begins",
        "rebalance ends",
    ]
    assert said(lines, group="g")[5:7] == ["session ended", "member left"]
    (generation, *_) = about(lines, "generation begins")
    assert (generation["generation"], generation["members"], generation["protocol"]) == (1, 2, "range")


def test_a_consumer_group_tells_joins_assignments_and_departures(lines: pytest.LogCaptureFixture) -> None:
    client = GroupClient()
    client.broker.topics.create("a", 2, {})
    client.send(
        ConsumerGroupHeartbeatRequest(
            group_id="readers",
            member_id="m1",
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=["a"],
            topic_partitions=[],
        )
    )
    client.clock.advance(60_000)

    assert said(lines, group="readers") == [
        "member joined",
        "assignment computed",
        "session ended",
        "member left",
    ]
