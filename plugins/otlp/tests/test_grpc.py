"""The gRPC transport, against a real endpoint on the loopback interface."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

from odradek.plugin import PluginConfig, Reject, Retry
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_table import read_settings

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit, Sink


def forwarder_of(endpoint: str, **table: object) -> OtlpForwarder:
    values = {name.replace("__", "."): value for name, value in table.items()}
    config = PluginConfig("plugins.otlp", values | {"endpoint": endpoint, "protocol": "grpc"})
    settings = read_settings(config, {})
    assert settings is not None
    return OtlpForwarder(settings, user_agent="odradek-otlp/test")


def with_forwarder(
    kit: Kit, work: Callable[[OtlpForwarder, Sink], Awaitable[None]], *script: object, **table: object
) -> Sink:
    """Run a coroutine with an endpoint and a started forwarder, and close both."""

    async def run() -> Sink:
        async with kit.grpc(*script) as sink:
            forwarder = forwarder_of(f"http://127.0.0.1:{sink.port}", **table)
            await forwarder.start()
            try:
                await work(forwarder, sink)
            finally:
                await forwarder.close()
        return sink

    return asyncio.run(run())


def refused(kit: Kit, answer: object, **table: object) -> Retry | Reject:
    """The exception of `deliver` after this answer."""
    caught: list[Retry | Reject] = []

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises((Retry, Reject)) as raised:
            await forwarder.deliver([kit.record("orders", "a")])
        assert isinstance(raised.value, Retry | Reject)
        caught.append(raised.value)

    with_forwarder(kit, deliver, answer, **table)
    return caught[0]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_batch_is_one_call_with_the_bytes_of_the_payloads(kit: Kit, compression: str) -> None:
    batch = [kit.record("orders", "a", "b"), kit.record("billing", "c")]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch), compression=compression)

    (request,) = sink.requests()
    assert sink.bodies == [b"".join(record.payload.data for record in batch)]
    assert len(request.resource_metrics) == 2


def test_headers_are_metadata(kit: Kit) -> None:
    batch = [kit.record("orders", "a")]

    sink = with_forwarder(
        kit, lambda forwarder, _: forwarder.deliver(batch), headers__Authorization="Bearer abc"
    )

    assert sink.headers[0]["authorization"] == "Bearer abc"
    assert sink.headers[0]["user-agent"].startswith("odradek-otlp/test ")


def test_a_batch_without_metrics_is_not_sent(kit: Kit) -> None:
    batch = [kit.record("orders")]

    sink = with_forwarder(kit, lambda forwarder, _: forwarder.deliver(batch))

    assert sink.bodies == []


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    ],
)
def test_a_retryable_code_is_a_retry(kit: Kit, code: grpc.StatusCode) -> None:
    error = refused(kit, kit.answer(code=code, message="slow down"))

    assert isinstance(error, Retry)
    assert str(error) == f"gRPC {code.name}: slow down"
    assert error.after_s is None


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    ],
)
def test_any_other_code_is_final(kit: Kit, code: grpc.StatusCode) -> None:
    error = refused(kit, kit.answer(code=code, message="no"))

    assert isinstance(error, Reject)
    assert str(error) == f"gRPC {code.name}: no"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, "unknown service"),
        (grpc.StatusCode.UNKNOWN, "Received http2 header with status: 301"),
    ],
)
def test_a_code_of_a_wrong_address_is_retried(kit: Kit, code: grpc.StatusCode, message: str) -> None:
    error = refused(kit, kit.answer(code=code, message=message))

    assert isinstance(error, Retry)
    assert str(error) == f"gRPC {code.name}: {message}; correct the endpoint in the plugin's table"


def test_success_without_an_otlp_answer_is_retried(kit: Kit) -> None:
    error = refused(kit, kit.answer(body=b"\xff\xff\xff"))

    assert isinstance(error, Retry)
    assert str(error) == "the answer is not OTLP; correct the endpoint in the plugin's table"


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_retry_info_sets_the_wait(kit: Kit, code: grpc.StatusCode) -> None:
    trailing = (("grpc-status-details-bin", kit.retry_details(2, 500_000_000)),)

    error = refused(kit, kit.answer(code=code, message="busy", trailing=trailing))

    assert isinstance(error, Retry)
    assert error.after_s == 2.5


def test_invalid_details_are_ignored(kit: Kit) -> None:
    trailing = (("grpc-status-details-bin", b"\xff\xff"),)

    error = refused(kit, kit.answer(code=grpc.StatusCode.UNAVAILABLE, message="busy", trailing=trailing))

    assert isinstance(error, Retry)
    assert error.after_s is None


def test_an_endpoint_that_does_not_answer_is_a_retry(kit: Kit) -> None:
    error = refused(kit, kit.answer(delay_s=30), timeout__ms=100)

    assert isinstance(error, Retry)
    assert str(error).startswith("gRPC DEADLINE_EXCEEDED")


def test_an_endpoint_that_is_down_is_a_retry(kit: Kit) -> None:
    async def run() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            forwarder = forwarder_of(f"http://127.0.0.1:{unused.getsockname()[1]}")
            await forwarder.start()
            with pytest.raises(Retry, match="UNAVAILABLE"):
                await forwarder.deliver([kit.record("orders", "a")])
            await forwarder.close()

    asyncio.run(run())


def test_a_server_without_tls_is_a_retry_for_a_client_with_it(kit: Kit) -> None:
    async def run() -> None:
        async with kit.grpc() as sink:
            forwarder = forwarder_of(f"https://127.0.0.1:{sink.port}", timeout__ms=2_000)
            await forwarder.start()
            with pytest.raises(Retry):
                await forwarder.deliver([kit.record("orders", "a")])
            await forwarder.close()

    asyncio.run(run())


def test_partial_success_is_counted_and_not_raised(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    success = ExportMetricsPartialSuccess(rejected_data_points=3, error_message="out of order")
    body = ExportMetricsServiceResponse(partial_success=success).SerializeToString()

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        await forwarder.deliver([kit.record("orders", "a")])
        assert forwarder.refused_points == {"partial_success": 3}

    with_forwarder(kit, deliver, kit.answer(body=body))

    assert [record.__dict__["rejected_data_points"] for record in caplog.records] == [3]


def test_the_forwarder_continues_after_each_fault(kit: Kit) -> None:
    faults = [kit.answer(code=grpc.StatusCode.UNAVAILABLE), kit.answer(code=grpc.StatusCode.INTERNAL)]

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        for _fault in faults:
            with pytest.raises((Retry, Reject)):
                await forwarder.deliver([kit.record("orders", "a")])
        await forwarder.deliver([kit.record("orders", "a")])

    sink = with_forwarder(kit, deliver, *faults)

    assert len(sink.bodies) == 3


def test_close_works_without_start_and_twice() -> None:
    async def run() -> None:
        forwarder = forwarder_of("http://127.0.0.1:1")
        await forwarder.close()
        await forwarder.start()
        await forwarder.close()
        await forwarder.close()

    asyncio.run(run())
