"""StreamsGroupHeartbeat: rights, names, internal topics (KIP-1071)."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from support.broker import BrokerClient
from support.grants import Grants
from support.streams_groups import active, statuses, topology
from support.streams_requests import beat, client, join, later, stateful


def ask(asked: BrokerClient, request: StreamsGroupHeartbeatRequest, version: int = 1) -> Any:
    answer: StreamsGroupHeartbeatResponse = asked.send(request, version)
    return answer


def test_it_is_refused_while_the_feature_is_off() -> None:
    assert ask(client(on=False), join()).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_gets_its_tasks(version: int) -> None:
    answer = ask(client(), join(), version)

    assert (answer.error_code, answer.member_epoch, active(answer)) == (0, 2, [0, 1])
    assert (answer.acceptable_recovery_lag_legacy, answer.acceptable_recovery_lag) == (
        (10_000, -1) if version == 0 else (0, 10_000)
    )


def test_topics_of_kafka_and_names_that_are_none_are_refused() -> None:
    asked = client()

    for name, said in (
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        ("a b", "Topic names a b are not valid topic names."),
    ):
        answer = ask(asked, join(topology(name)))
        assert (answer.error_code, answer.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, said)


# -- internal topics


def test_a_missing_changelog_is_created_with_its_settings() -> None:
    asked = client()

    joined = ask(asked, join(stateful(cleanup_policy="compact")))
    later(asked)
    told = ask(asked, beat(2))

    assert statuses(joined) == [(3, "Internal topics are missing: log")]
    log = asked.broker.topics.by_name["log"]
    assert (len(log.partitions), log.config.cleanup_policy) == (2, frozenset({"compact"}))
    assert (told.member_epoch, active(told), told.status) == (3, [0, 1], [])


def test_a_topic_that_cannot_be_created_is_told_and_tried_again_later() -> None:
    asked = client()
    wrong = stateful(cleanup_policy="wrong")
    ask(asked, join(wrong))
    later(asked)

    told = ask(asked, beat(2))

    ((code, detail),) = statuses(told)
    assert code == 3
    assert detail.startswith(
        "Internal topics are missing: log; Creation failed: log (Invalid value wrong for "
    )
    later(asked, 10_000)
    assert statuses(ask(asked, beat(2))) == [(3, "Internal topics are missing: log")]


# -- rights


@pytest.mark.parametrize(
    ("rights", "code"),
    [
        ([], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (["READ GROUP streamers"], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (["READ GROUP streamers", "DESCRIBE TOPIC words"], ErrorCode.NONE),
    ],
)
def test_a_member_needs_the_group_and_must_see_its_topics(rights: list[str], code: ErrorCode) -> None:
    assert ask(client(authorizer=Grants(rights)), join()).error_code == code


def test_internal_topics_are_created_only_for_a_member_that_may_create_them() -> None:
    seen = ["READ GROUP streamers", "DESCRIBE TOPIC words", "DESCRIBE TOPIC log"]
    asked = client(authorizer=Grants(seen))

    told = statuses(ask(asked, join(stateful())))

    assert told == [(3, "Internal topics are missing: log; Unauthorized to CREATE on topics log.")]
    assert "log" not in asked.broker.topics.by_name
    able = client(authorizer=Grants([*seen, "CREATE TOPIC log"]))
    ask(able, join(stateful()))
    later(able)
    assert "log" in able.broker.topics.by_name
