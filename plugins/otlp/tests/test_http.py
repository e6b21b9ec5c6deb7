"""The HTTP transport, against a real endpoint on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import time
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING

import pytest

from odradek.endpoints.http_answer import retry_after_s
from odradek.plugin import Reject, Retry
from odradek_otlp.http_transport import HttpTransport
from odradek_otlp.otlp_forwarder import OtlpForwarder
from support import otlp_exports
from support.accepting import waiting_connections_are_made

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit, Sink

forwarder_of = partial(otlp_exports.forwarder_of, "http/protobuf")
with_forwarder = partial(otlp_exports.with_forwarder, "http/protobuf")
refused = partial(otlp_exports.refused, "http/protobuf")


def test_a_batch_is_one_request_with_every_metric_and_label(kit: Kit) -> None:
    batch = [kit.record("orders", "a", "b"), kit.record("billing", "c")]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch))

    (request,) = sink.requests()
    labels = [resource.resource.attributes[0].value.string_value for resource in request.resource_metrics]
    scopes = [resource.scope_metrics[0] for resource in request.resource_metrics]
    names = [metric.name for scope in scopes for metric in scope.metrics]
    assert labels == ["orders", "billing"]
    assert names == ["a", "b", "c"]


def test_the_bytes_on_the_wire_are_the_payloads(kit: Kit) -> None:
    batch = [kit.record("orders", "a"), kit.record("billing", "b")]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch))

    assert sink.bodies == [b"".join(record.payload.data for record in batch)]


def test_path_and_headers_are_those_of_the_table(kit: Kit) -> None:
    batch = [kit.record("orders", "a")]

    sink = with_forwarder(
        kit, lambda forwarder, _: forwarder.deliver(batch), path="/otlp", headers__Authorization="Bearer abc"
    )

    assert sink.paths == ["/otlp/v1/metrics"]
    assert sink.headers[0]["authorization"] == "Bearer abc"
    assert sink.headers[0]["content-type"] == "application/x-protobuf"
    assert sink.headers[0]["user-agent"] == "odradek-otlp/test"
    assert "content-encoding" not in sink.headers[0]


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_body_can_be_compressed(kit: Kit, compression: str) -> None:
    batch = [kit.record("orders", *["metric.name"] * 1_000)]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch), compression=compression)

    assert sink.headers[0]["content-encoding"] == compression
    assert int(sink.headers[0]["content-length"]) < len(batch[0].payload.data) / 10
    assert sink.bodies == [batch[0].payload.data]


def test_a_body_of_some_megabytes_arrives_whole(kit: Kit) -> None:
    batch = [kit.record("orders", *["x" * 100_000] * 30)]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch))

    assert sink.bodies == [batch[0].payload.data]


def test_connections_are_reused(kit: Kit) -> None:
    async def twice(forwarder: OtlpForwarder, _: Sink) -> None:
        for _number in range(5):
            await forwarder.deliver([kit.record("orders", "a")])
        assert isinstance(forwarder.transport, HttpTransport)
        assert forwarder.transport.client.session is not None
        assert forwarder.transport.client.session.connector is not None
        assert len(forwarder.transport.client.session.connector._conns) == 1

    sink = with_forwarder(kit, twice)

    assert len(sink.bodies) == 5


@pytest.mark.parametrize("status", [401, 403, 429, 502, 503, 504])
def test_a_retryable_status_is_a_retry(kit: Kit, status: int) -> None:
    error = refused(kit, kit.answer(status=status, message="slow down", content_type="text/plain"))

    assert isinstance(error, Retry)
    assert str(error) == f"HTTP {status}: slow down"
    assert error.after_s is None


def test_retry_after_sets_the_wait(kit: Kit) -> None:
    error = refused(kit, kit.answer(status=429, headers={"Retry-After": "7"}))

    assert isinstance(error, Retry)
    assert error.after_s == 7


@pytest.mark.parametrize("status", [300, 301, 302, 307, 308])
def test_a_redirect_is_retried_and_says_where_the_endpoint_is(kit: Kit, status: int) -> None:
    location = "https://collector.example:4318/v1/metrics"

    error = refused(kit, kit.answer(status=status, headers={"Location": location}))

    assert isinstance(error, Retry)
    assert str(error) == f"HTTP {status}: redirect to {location}; correct the endpoint in the plugin's table"


@pytest.mark.parametrize("status", [404, 405, 415])
def test_a_status_of_a_wrong_address_is_retried(kit: Kit, status: int) -> None:
    error = refused(kit, kit.answer(status=status, message="no such page", content_type="text/plain"))

    assert isinstance(error, Retry)
    assert str(error) == f"HTTP {status}: no such page; correct the endpoint in the plugin's table"


@pytest.mark.parametrize(
    ("body", "content_type", "problem"),
    [
        (b"<html>Welcome</html>", "text/html", "HTTP 200: the answer is text/html"),
        (b"\xff\xff\xff", "application/x-protobuf", "the answer is not OTLP"),
    ],
)
def test_success_without_an_otlp_answer_is_retried(
    kit: Kit, body: bytes, content_type: str, problem: str
) -> None:
    error = refused(kit, kit.answer(status=200, body=body, content_type=content_type))

    assert isinstance(error, Retry)
    assert str(error) == f"{problem}; correct the endpoint in the plugin's table"


@pytest.mark.parametrize("status", [400, 413, 500, 501])
def test_any_other_status_is_final(kit: Kit, status: int) -> None:
    error = refused(kit, kit.answer(status=status))

    assert isinstance(error, Reject)
    assert str(error) == f"HTTP {status}"
    assert len(error.records) == 1


def test_the_message_of_a_status_body_is_reported(kit: Kit) -> None:
    error = refused(kit, kit.answer(status=400, body=b"\x08\x03\x12\x09bad\nlabel"))

    assert str(error) == "HTTP 400: bad label"


def test_a_long_message_is_truncated(kit: Kit) -> None:
    error = refused(kit, kit.answer(status=400, message="x" * 10_000, content_type="text/plain"))

    assert len(str(error)) < 200


@pytest.mark.parametrize(
    "body", [b"\xff\xff\xff", b"\x1a\x2d\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x01\xff"]
)
def test_an_invalid_error_body_is_ignored(kit: Kit, body: bytes) -> None:
    error = refused(kit, kit.answer(status=400, body=body))

    assert str(error) == "HTTP 400"


def test_an_endpoint_that_does_not_answer_is_a_retry(kit: Kit) -> None:
    error = refused(kit, kit.answer(delay_s=30), timeout__ms=50)

    assert isinstance(error, Retry)
    assert str(error) == "no answer within 50 ms"


def test_a_truncated_answer_is_a_retry(kit: Kit) -> None:
    error = refused(kit, kit.answer(cut=True))

    assert isinstance(error, Retry)


def test_an_endpoint_that_is_not_an_http_server_is_a_retry(kit: Kit) -> None:
    ended: list[asyncio.Task[None]] = []

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                await reader.read(10)
                writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            finally:
                writer.close()
                await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.create_task(babble(reader, writer)))

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        forwarder = forwarder_of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await forwarder.start()
        with pytest.raises(Retry):
            await forwarder.deliver([kit.record("orders", "a")])
        await forwarder.close()
        await waiting_connections_are_made()
        server.close()
        while waiting := [each for each in ended if not each.done()]:
            await asyncio.wait_for(asyncio.gather(*waiting), 10)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "application/x-protobuf"),
        (b'{"partialSuccess":{}}', "application/json"),
        (b"x" * 3_000_000, "application/x-protobuf"),
    ],
)
def test_an_empty_answer_is_success(
    kit: Kit, caplog: pytest.LogCaptureFixture, body: bytes, content_type: str
) -> None:
    batch = [kit.record("orders", "a")]

    with_forwarder(
        kit,
        lambda forwarder, _: forwarder.deliver(batch),
        kit.answer(body=body, content_type=content_type),
    )

    assert caplog.records == []


@pytest.mark.parametrize(
    "value",
    [
        "Fri, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Fri, 01 Jan 2030 99999999999999999999:00:00 GMT",
        "Fri, 01 Jan 2030 00:00:00 +99999999999999999999",
        "-5",
    ],
)
def test_an_invalid_retry_after_is_still_a_retry(kit: Kit, value: str) -> None:
    error = refused(kit, kit.answer(status=429, headers={"Retry-After": value}))

    assert isinstance(error, Retry)
    assert error.after_s is None


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    now_s = time.time()

    found = [
        retry_after_s(value, now_s)
        for value in (None, "", "12", " 3 ", "soon", "-5", "1.5", formatdate(now_s + 100, usegmt=True))
    ]

    assert found[:7] == [None, None, 12, 3, None, None, None]
    assert found[7] == pytest.approx(100, abs=1.5)
    assert retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT", now_s) == 0
