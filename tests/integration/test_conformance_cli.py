"""``odradek conformance`` against the telemetry topic of a host, and against the requests that a host has
seen.
"""

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
    """A host that stores pushes."""
    host = odradek_hosts(telemetry_durability="log", telemetry_topic_partitions=3)
    host.subscribe("org.apache.kafka.", interval_ms=1_000)
    return host


@pytest.fixture
def tool(host: RunningHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "conformance", capsys)


def push_twice(host: RunningHost, client_id: str) -> list[ErrorCode]:
    """One push of a Java producer, and its last push."""
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


def test_the_report_is_made_from_the_topic(host: RunningHost, tool: Tool) -> None:
    assert push_twice(host, "me") == push_twice(host, "you") == [ErrorCode.NONE, ErrorCode.NONE]

    done = tool("--client-id", "me")

    assert done.status == 0, done.err
    assert done.out[0].startswith("client me (")
    assert done.out[2] == "seen in the topic: 2 pushes, 96 metrics"
    assert "ok      terminating push: the last push is terminating" in done.out
    assert "unseen  first push: the topic contains only accepted pushes" in done.out
    assert "standard metrics: 8 of 8" in done.out
    assert f"sent      {LATENCY}: gauge, labels node_id" in done.out


def test_the_report_can_be_json(host: RunningHost, tool: Tool) -> None:
    push_twice(host, "me")

    told = json.loads("\n".join(tool("--client-id", "me", "--json", "--since", "1m").out))

    assert (told["source"], told["pushes"], told["roles"], told["wrong"]) == ("topic", 2, ["producer"], [])
    assert {row["state"] for row in told["metrics"]} == {"sent"}


def test_a_client_missing_from_the_topic_is_reported(host: RunningHost, tool: Tool) -> None:
    push_twice(host, "you")

    done = tool("--client-id", "me")

    assert (done.status, done.out) == (1, [])
    assert done.err == [
        "Error while executing conformance command : "
        "topic __client_telemetry has no push of client me since 1h"
    ]


def test_a_host_without_a_telemetry_topic_is_reported(
    odradek_host: RunningHost, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_dropped_handshake_is_seen(odradek_host: RunningHost) -> None:
    odradek_host.fault("GetTelemetrySubscriptions", drop="before")
    with pytest.raises(Exception, match="closed"):
        push_twice(odradek_host, "me")
    push_twice(odradek_host, "me")

    assert odradek_host.telemetry.conformance("me").handshakes == 2


def test_a_manual_clock_gives_no_timing_results(odradek_hosts: Hosts) -> None:
    host = odradek_hosts(clock=VirtualClock())
    host.subscribe("org.apache.kafka.", interval_ms=1_000)

    push_twice(host, "me")

    rules = {row.rule: row for row in host.telemetry.conformance("me").rules}
    assert rules["first push"].seen == "a test controlled the host's clock"


def test_a_missing_client_error_names_the_clients_that_came(odradek_host: RunningHost) -> None:
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


def test_an_unknown_partition_cannot_be_fetched(host: RunningHost) -> None:
    with Cluster(host.bootstrap) as cluster, pytest.raises(RequestFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(fetching.fetch(cluster, ("__client_telemetry", 9), 0, 1))
