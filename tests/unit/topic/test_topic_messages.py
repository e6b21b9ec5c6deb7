"""Messages of topics in every format, as telemetry records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.protobuf import json_format
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import Origin, TelemetryRecord
from odradek.testing.pushes import recorded, recorded_clients
from odradek.topic import MalformedTelemetry, TopicFormat, decode_message, encode_headers, record_key
from odradek.topic.topic_messages import MAX_JSON_BYTES
from support.telemetry_records import telemetry_record

INSTANCE = bytes(range(16))
TWO = MetricsData()
for name in ("billing", "orders"):
    attribute = TWO.resource_metrics.add().resource.attributes.add(key="service.name")
    attribute.value.string_value = name


def decoded(form: TopicFormat, value: bytes | None) -> list[TelemetryRecord]:
    return decode_message(form, b"any", value, (), timestamp_ms=5_000, interval_ms=30_000)


def test_a_record_of_a_host_is_read_as_it_was_written() -> None:
    record = replace(telemetry_record(b"", INSTANCE), origin=Origin("AAECAwQFBgcICQoLDA0ODw", 0, 3))

    (found,) = decode_message(
        TopicFormat.ODRADEK, record_key(INSTANCE), b"", encode_headers(record), timestamp_ms=1, interval_ms=1
    )

    assert found.origin == record.origin
    assert (found.push_interval_ms, found.labeled, found.source) == (1_000, True, None)


@pytest.mark.parametrize("client", recorded_clients())
def test_a_recorded_push_is_a_record_without_labels(client: str) -> None:
    data = recorded(client)[-1].data

    (found,) = decoded(TopicFormat.OTLP_PROTO, data)

    assert (found.source, found.labeled, found.origin) == ("kafka", False, None)
    assert (found.context.received_ms, found.push_interval_ms) == (5_000, 30_000)
    assert MetricsData.FromString(found.payload.data) == MetricsData.FromString(data)


@pytest.mark.parametrize("client", recorded_clients())
def test_json_is_read_as_protobuf_is(client: str) -> None:
    data = recorded(client)[-1].data
    text = json_format.MessageToJson(MetricsData.FromString(data), use_integers_for_enums=True)

    (found,) = decoded(TopicFormat.OTLP_JSON, text.encode())
    (wanted,) = decoded(TopicFormat.OTLP_PROTO, data)

    assert MetricsData.FromString(found.payload.data) == MetricsData.FromString(wanted.payload.data)
    assert found.payload.client_instance_id == wanted.payload.client_instance_id


def test_a_message_with_two_services_is_two_clients() -> None:
    found = decoded(TopicFormat.OTLP_PROTO, TWO.SerializeToString())

    assert [each.context.client_id for each in found] == ["billing", "orders"]


def test_an_empty_message_has_no_records() -> None:
    assert decoded(TopicFormat.OTLP_PROTO, b"") == []


@pytest.mark.parametrize("form", [TopicFormat.OTLP_PROTO, TopicFormat.OTLP_JSON])
@pytest.mark.parametrize("value", [None, b"\xff\xff"])
def test_another_message_is_malformed(form: TopicFormat, value: bytes | None) -> None:
    with pytest.raises(MalformedTelemetry):
        decoded(form, value)


def test_large_json_is_not_read() -> None:
    with pytest.raises(MalformedTelemetry, match="at most"):
        decoded(TopicFormat.OTLP_JSON, b" " * (MAX_JSON_BYTES + 1))
