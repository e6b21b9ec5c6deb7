"""Recorded pushes."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.testing.pushes import observation, recorded, recorded_clients
from odradek.testing.pushes.recording import read, written
from odradek.wire.compression import decompress
from odradek.wire.error_code import ErrorCode

CLIENTS = {
    "franz-go": "kgo",
    "java-admin": "apache-kafka-java",
    "java-application": "apache-kafka-java",
    "java-consumer": "apache-kafka-java",
    "java-producer": "apache-kafka-java",
    "java-share": "apache-kafka-java",
    "java-streams": "apache-kafka-java",
    "librdkafka-consumer": "confluent-kafka-python",
    "librdkafka-producer": "confluent-kafka-python",
}


def test_each_client_has_a_recording() -> None:
    assert recorded_clients() == sorted(CLIENTS)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_push_is_otlp_with_its_request_context(client: str) -> None:
    pushes = recorded(client)

    assert len(pushes) >= 4
    for push in pushes:
        assert (push.context.client_id or "").removesuffix("-StreamThread-1-consumer") == client
        assert push.context.connection.client_software_name == CLIENTS[client]
        assert MetricsData.FromString(push.data).resource_metrics
        assert decompress(push.record.codec, push.sent, 1 << 20) == push.data
        assert push.record.push_interval_ms == 2_000


def test_without_a_name_the_pushes_of_all_clients_are_returned() -> None:
    assert {push.client for push in recorded()} == set(CLIENTS)


def test_an_application_pushes_its_own_metrics() -> None:
    names = {
        metric.name
        for push in recorded("java-application")
        for entry in MetricsData.FromString(push.data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    }

    assert {
        "org.apache.kafka.stream.thread.process.rate",
        "org.apache.kafka.stream.task.active.buffer.count",
    } <= names


def test_a_client_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(ValueError, match="no recording of 'sarama': expected one of franz-go, "):
        recorded("sarama")


@pytest.mark.parametrize("client", CLIENTS)
def test_each_refusal_is_recorded(client: str) -> None:
    errors = {each.error for each in observation(client).exchanges}

    assert errors >= {
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.TELEMETRY_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
    }


def test_a_written_recording_can_be_read() -> None:
    exchanges = list(read("franz-go"))

    again = written(exchanges, 5).splitlines()

    assert len(again) == len(exchanges) + 1
    assert again[0].startswith('{"until_ms": 5, "connections": [{"connection_id": ')
