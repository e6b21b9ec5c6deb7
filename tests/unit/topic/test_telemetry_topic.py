"""The record format: written records are read back, and malformed ones are refused."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.plugin import ClientTelemetryPayload, ConnectionContext, Origin, RequestContext, TelemetryRecord
from odradek.testing import request_context
from odradek.topic import MalformedTelemetry, decode_record, encode_headers, record_key
from support.examples import examples
from support.telemetry_records import push_request, telemetry_record

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
UNKNOWN_IF_EMPTY = TEXT.filter(bool)
INT32 = st.integers(-(2**31), 2**31 - 1)

CONNECTIONS = st.builds(
    ConnectionContext,
    connection_id=TEXT,
    listener_name=TEXT,
    security_protocol=TEXT,
    client_address=TEXT,
    client_port=st.integers(0, 65_535),
    node_id=INT32,
    principal=TEXT,
    client_software_name=UNKNOWN_IF_EMPTY,
    client_software_version=UNKNOWN_IF_EMPTY,
)
RECORDS = st.builds(
    TelemetryRecord,
    context=st.builds(
        RequestContext,
        connection=CONNECTIONS,
        api_key=st.just(72),
        api_version=st.just(0),
        correlation_id=st.just(0),
        client_id=st.none() | TEXT,
        received_ms=st.integers(0, 2**50),
    ),
    push_interval_ms=st.integers(100, 3_600_000),
    payload=st.builds(
        ClientTelemetryPayload,
        client_instance_id=st.binary(min_size=16, max_size=16),
        terminating=st.booleans(),
        data=st.binary(max_size=50),
    ),
    subscription_id=INT32,
    codec=st.integers(0, 4),
)


def fields_of(record: TelemetryRecord) -> dict[str, object]:
    return dataclasses.asdict(record)


@settings(max_examples=examples(200))
@given(RECORDS)
def test_a_written_record_is_read_back(record: TelemetryRecord) -> None:
    key, headers = record_key(record.payload.client_instance_id), encode_headers(record)

    read = decode_record(key, record.payload.data, headers)

    assert fields_of(read) == fields_of(record)


EXAMPLE = TelemetryRecord(
    context=request_context(client_id="orders", received_ms=1_700_000_000_000, correlation_id=0),
    push_interval_ms=30_000,
    payload=ClientTelemetryPayload(bytes(range(16)), terminating=True, data=b"otlp"),
    subscription_id=-5,
    codec=4,
)


def test_the_format_is_text_that_any_tool_can_print() -> None:
    headers = encode_headers(EXAMPLE)

    assert record_key(EXAMPLE.payload.client_instance_id) == b"AAECAwQFBgcICQoLDA0ODw"
    assert headers == [
        ("client_id", b"orders"),
        ("client_software_name", b"unknown"),
        ("client_software_version", b"unknown"),
        ("client_source_address", b"127.0.0.1"),
        ("client_source_port", b"50000"),
        ("principal", b"User:ANONYMOUS"),
        ("listener", b"PLAINTEXT"),
        ("security_protocol", b"PLAINTEXT"),
        ("connection_id", b"127.0.0.1:9092-127.0.0.1:50000-0"),
        ("broker_id", b"1"),
        ("api_version", b"0"),
        ("push_interval_ms", b"30000"),
        ("subscription_id", b"-5"),
        ("received_ms", b"1700000000000"),
        ("codec", b"zstd"),
        ("terminating", b"true"),
    ]


def test_headers_of_a_later_version_are_ignored() -> None:
    headers = [*encode_headers(EXAMPLE), ("color", b"red"), ("nothing", None)]

    read = decode_record(record_key(bytes(range(16))), b"otlp", headers)

    assert fields_of(read) == fields_of(EXAMPLE)


@pytest.mark.parametrize(
    "missing", ["principal", "listener", "received_ms", "codec", "terminating", "subscription_id"]
)
def test_a_record_without_a_header_is_malformed(missing: str) -> None:
    headers = [header for header in encode_headers(EXAMPLE) if header[0] != missing]

    with pytest.raises(MalformedTelemetry, match=missing):
        decode_record(record_key(bytes(16)), b"", headers)


@pytest.mark.parametrize("key", [None, b"", b"no uuid", b"\xff" * 22, b"A" * 23])
def test_a_record_without_an_instance_id_is_malformed(key: bytes | None) -> None:
    with pytest.raises(MalformedTelemetry):
        decode_record(key, b"", encode_headers(EXAMPLE))


@pytest.mark.parametrize(
    ("name", "value"), [("codec", b"brotli"), ("client_source_port", b"http"), ("received_ms", b"")]
)
def test_a_header_that_is_not_a_number_or_codec_is_malformed(name: str, value: bytes) -> None:
    with pytest.raises(MalformedTelemetry):
        decode_record(record_key(bytes(16)), b"", [*encode_headers(EXAMPLE), (name, value)])


def test_a_null_value_is_malformed() -> None:
    with pytest.raises(MalformedTelemetry):
        decode_record(record_key(bytes(16)), None, encode_headers(EXAMPLE))


WAYS = [
    {},
    {"labeled": False},
    {"source": "otlp"},
    {"origin": Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 3, 2**40)},
    {"labeled": False, "source": "relay", "origin": Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 0, 0), "observed": True},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way) or "push")
def test_the_way_of_a_record_survives(way: dict[str, Any]) -> None:
    record = replace(telemetry_record(b"data"), **way)

    headers = encode_headers(record)
    read = decode_record(record_key(record.payload.client_instance_id), b"data", headers)

    assert (read.labeled, read.source, read.origin, read.observed) == (
        record.labeled,
        record.source,
        record.origin,
        record.observed,
    )
    assert len(headers) == 16 + sum({"origin": 3}.get(name, 1) for name in way)


def test_the_cluster_of_a_relayed_record_survives() -> None:
    record = telemetry_record(b"data", request=push_request())
    record.context.connection.cluster_id = "x4Vb1KtGQ5a9IYmNqeLhWg"

    headers = encode_headers(record)
    read = decode_record(record_key(record.payload.client_instance_id), b"data", headers)

    assert read.context.connection.cluster_id == "x4Vb1KtGQ5a9IYmNqeLhWg"
    assert len(headers) == 17


@pytest.mark.parametrize("missing", ["origin_partition", "origin_offset"])
def test_half_an_origin_is_malformed(missing: str) -> None:
    record = replace(telemetry_record(b"data"), origin=Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 1, 2))
    headers = [header for header in encode_headers(record) if header[0] != missing]

    with pytest.raises(MalformedTelemetry, match=missing):
        decode_record(record_key(bytes(16)), b"data", headers)
