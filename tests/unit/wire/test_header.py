"""Headers: the header version of each API version, and Kafka's two exceptions."""

from __future__ import annotations

import pytest

from odradek.wire.errors import Truncated, WireError
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.wire.types import Message
from support.headers import peek_api, read_request_header, response_header

PLAIN = bytes.fromhex("0048 0000 00000007 0003 636c69")
FLEXIBLE = PLAIN + b"\0"
TAGGED = PLAIN + bytes.fromhex("02 00 01 ff 05 00")
HEADER = RequestHeader(72, 0, 7, "cli")


@pytest.mark.parametrize(("data", "flexible"), [(PLAIN, False), (FLEXIBLE, True), (TAGGED, True)])
def test_a_request_header_is_decoded(data: bytes, flexible: bool) -> None:
    frame = b"size" + data + b"body"

    header, offset = read_request_header(frame, 4, flexible)

    assert header == HEADER
    assert frame[offset:] == b"body"


@pytest.mark.parametrize("flexible", [False, True])
def test_a_request_header_is_encoded(flexible: bool) -> None:
    header = HEADER

    data = request_header(header, flexible)

    assert data == (FLEXIBLE if flexible else PLAIN)


@pytest.mark.parametrize(("client_id", "length"), [(None, "ffff"), ("", "0000")])
def test_null_and_empty_client_ids_are_different(client_id: str | None, length: str) -> None:
    data = bytes.fromhex("0012 0003 00000001" + length + "00")

    header, _ = read_request_header(data, 0, True)

    assert header.client_id == client_id
    assert request_header(header, True) == data


def test_a_header_can_be_in_a_memoryview() -> None:
    data = memoryview(FLEXIBLE)

    header, _ = read_request_header(data, 0, True)

    assert header == HEADER


def test_key_and_version_can_be_read_before_the_header() -> None:
    data = PLAIN[:4]

    key, version = peek_api(data)

    assert (key, version) == (72, 0)


@pytest.mark.parametrize("size", range(len(TAGGED)))
def test_a_truncated_header_is_truncated(size: int) -> None:
    data = TAGGED[:size]

    with pytest.raises(Truncated):
        read_request_header(data, 0, True)


@pytest.mark.parametrize("size", range(4))
def test_less_than_an_api_key_and_version_is_truncated(size: int) -> None:
    data = PLAIN[:size]

    with pytest.raises(Truncated):
        peek_api(data)


def test_a_client_id_that_is_not_utf_8_is_read_as_in_kafka() -> None:
    header, _ = read_request_header(bytes.fromhex("0048 0000 00000007 0004 61 eda080 00"), 0, True)

    assert header.client_id == "a\ufffd"


@pytest.mark.parametrize("broken", ["0001 61 ffffffffff01", "0001 61 914e"])
def test_a_broken_header_is_a_wire_error(broken: str) -> None:
    data = bytes.fromhex("0048 0000 00000007" + broken)

    with pytest.raises(WireError):
        read_request_header(data, 0, True)


@pytest.mark.parametrize(
    "header",
    [
        RequestHeader(72, 0, 2**31, None),
        RequestHeader(72, 0, 1, "x" * 40_000),
        RequestHeader(72, 0, 1, "\ud800"),
    ],
    ids=["correlation id", "long client id", "no text"],
)
def test_a_header_that_cannot_be_encoded_is_a_wire_error(header: RequestHeader) -> None:
    flexible = True

    with pytest.raises(WireError):
        request_header(header, flexible)


@pytest.mark.parametrize(("flexible", "data"), [(False, "00000007"), (True, "00000007 00")])
def test_response_headers_are_encoded(flexible: bool, data: str) -> None:
    correlation_id = 7

    written = response_header(correlation_id, flexible)

    assert written == bytes.fromhex(data)
    assert read_response_header(written, 0, flexible) == (correlation_id, len(written))


@pytest.mark.parametrize("data", ["000000", "00000007", "00000007 01"])
def test_a_truncated_response_header_is_truncated(data: str) -> None:
    flexible = True

    with pytest.raises(Truncated):
        read_response_header(bytes.fromhex(data), 0, flexible)


def test_the_version_selects_the_header() -> None:
    requests: list[tuple[type[Message], int]] = [
        (PushTelemetryRequest, 0),
        (SaslHandshakeRequest, 1),
        (ApiVersionsRequest, 2),
        (ApiVersionsRequest, 3),
    ]

    flexible = [flexible_request_header(cls, version) for cls, version in requests]

    assert flexible == [True, False, False, True]


def test_the_response_header_of_api_versions_is_never_flexible() -> None:
    responses: list[tuple[type[Message], int]] = [
        (PushTelemetryResponse, 0),
        (SaslHandshakeResponse, 1),
        (ApiVersionsResponse, 4),
    ]

    flexible = [flexible_response_header(cls, version) for cls, version in responses]

    assert flexible == [True, False, False]
