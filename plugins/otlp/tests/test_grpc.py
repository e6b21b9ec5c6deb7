"""The gRPC transport, against a real endpoint on the loopback interface."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import grpc
import pytest

from odradek.plugin import Reject, Retry
from support import otlp_exports

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit

forwarder_of = partial(otlp_exports.forwarder_of, "grpc")
with_forwarder = partial(otlp_exports.with_forwarder, "grpc")
refused = partial(otlp_exports.refused, "grpc")


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


def test_a_server_without_tls_is_a_retry_for_a_client_with_it(kit: Kit) -> None:
    async def run() -> None:
        async with kit.grpc() as sink:
            forwarder = forwarder_of(f"https://127.0.0.1:{sink.port}", timeout__ms=2_000)
            await forwarder.start()
            with pytest.raises(Retry):
                await forwarder.deliver([kit.record("orders", "a")])
            await forwarder.close()

    asyncio.run(run())
