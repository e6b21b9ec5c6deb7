"""``odradek conformance`` against the telemetry topic of a host, and what the host itself has seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from odradek.client import fetch as fetching
from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed
from odradek.testing import NothingCame, RunningHost, VirtualClock
from odradek.testing.pushes import recorded
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.tools import Tool, command_line

Hosts = Callable[..., RunningHost]
JAVA = recorded("java-producer")
LATENCY = "org.apache.kafka.producer.node.request.latency.avg"


@pytest.fixture
def host(odradek_hosts: Hosts) -> RunningHost:
    """A host that keeps pushes."""
    host = odradek_hosts(telemetry_durability="log", telemetry_topic_partitions=3)
    host.subscribe("org.apache.kafka.", interval_ms=1_000)
    return host


@pytest.fixture
def tool(host: RunningHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "conformance", capsys)


def push_twice(host: RunningHost, client_id: str) -> list[ErrorCode]:
    """What a Java producer said once, and its last push."""
    connection = Connection(*host.address, client_id, 10)
    given = connection.send(GetTelemetrySubscriptionsRequest())
    answers: list[Any] = [
        connection.send(
            PushTelemetryRequest(
                client_instance_id=given.client_instance_id,
                subscription_id=given.subscription_id,
                compression_type=push.record.codec,
                terminating=terminating,
                metrics=push.sent,
            )
        )
        for push, terminating in ((JAVA[1], False), (JAVA[2], True))
    ]
    connection.close()
    return [ErrorCode(answer.error_code) for answer in answers]


def test_the_topic_tells_what_a_client_pushed(host: RunningHost, tool: Tool) -> None:
    assert push_twice(host, "me") == push_twice(host, "you") == [ErrorCode.NONE, ErrorCode.NONE]

    done = tool("--client-id", "me")

    assert done.status == 0, done.err
    assert done.out[0].startswith("client me (")
    assert done.out[2] == "seen in the topic: 2 pushes, 96 metrics"
    assert "ok      terminating push: the last push is marked" in done.out
    assert "unseen  first push: the topic has accepted pushes only" in done.out
    assert "standard metrics: 8 of 8" in done.out
    assert f"sent      {LATENCY}: gauge, labels node_id" in done.out


def test_the_same_as_json(host: RunningHost, tool: Tool) -> None:
    push_twice(host, "me")

    told = json.loads("\n".join(tool("--client-id", "me", "--json", "--since", "1m").out))

    assert (told["source"], told["pushes"], told["roles"], told["wrong"]) == ("topic", 2, ["producer"], [])
    assert {row["state"] for row in told["metrics"]} == {"sent"}


def test_a_client_that_is_not_in_the_topic(host: RunningHost, tool: Tool) -> None:
    push_twice(host, "you")

    done = tool("--client-id", "me")

    assert (done.status, done.out) == (1, [])
    assert done.err == [
        "Error while executing conformance command : "
        "topic __client_telemetry has no push of client me since 1h"
    ]


def test_a_host_that_keeps_no_pushes(odradek_host: RunningHost, capsys: pytest.CaptureFixture[str]) -> None:
    done = command_line(odradek_host.bootstrap, "conformance", capsys)("--client-id", "me")

    assert done.status == 1
    assert "__client_telemetry" in done.err[0]


def test_a_host_of_the_kit_sees_handshakes_and_refusals(odradek_host: RunningHost) -> None:
    odradek_host.subscribe("org.apache.kafka.", interval_ms=60_000)
    odradek_host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID")

    push_twice(odradek_host, "me")
    report = odradek_host.telemetry.conformance("m*")

    rules = {row.rule: row for row in report.rules}
    assert (report.source, report.handshakes, report.pushes, report.refused) == ("requests", 1, 2, 1)
    assert (rules["subscription id"].verdict, rules["size"].verdict) == ("ok", "ok")
    assert rules["first push"].seen.endswith(" of the interval after the handshake")
    assert rules["first push"].verdict == "wrong"


def test_a_handshake_that_was_dropped_is_seen(odradek_host: RunningHost) -> None:
    odradek_host.fault("GetTelemetrySubscriptions", drop="before")
    with pytest.raises(Exception, match="closed"):
        push_twice(odradek_host, "me")
    push_twice(odradek_host, "me")

    assert odradek_host.telemetry.conformance("me").handshakes == 2


def test_a_clock_driven_by_hand_tells_nothing_about_time(odradek_hosts: Hosts) -> None:
    host = odradek_hosts(clock=VirtualClock())
    host.subscribe("org.apache.kafka.", interval_ms=1_000)

    push_twice(host, "me")

    rules = {row.rule: row for row in host.telemetry.conformance("me").rules}
    assert rules["first push"].seen == "the host's clock was driven by hand"


def test_a_client_that_never_came_says_who_came(odradek_host: RunningHost) -> None:
    push_twice(odradek_host, "you")

    with pytest.raises(NothingCame, match=r"nothing from client me(?s:.*)you \("):
        odradek_host.telemetry.conformance("me")


def test_records_are_fetched_piece_by_piece(host: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MAX_BYTES", 1)
    for _ in range(5):
        push_twice(host, "me")
    kept = {
        index: [record.offset for record in host.topics.records("__client_telemetry", index)]
        for index in range(3)
    }

    with Cluster(host.bootstrap) as cluster:
        found = {
            index: [
                record.offset
                for record in fetching.fetch(cluster, ("__client_telemetry", index), 1, len(offsets))
            ]
            for index, offsets in kept.items()
        }

    assert found == {index: offsets[1:] for index, offsets in kept.items()}
    assert sum(map(len, kept.values())) == 10


def test_a_partition_that_is_not_there_cannot_be_fetched(host: RunningHost) -> None:
    with Cluster(host.bootstrap) as cluster, pytest.raises(RequestFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(fetching.fetch(cluster, ("__client_telemetry", 9), 0, 1))
