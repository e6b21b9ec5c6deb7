"""What both transports have in common, against a real endpoint on the loopback interface."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

from odradek.plugin import Reject, Retry
from odradek_otlp.otlp_forwarder import OtlpForwarder
from support.otlp_exports import forwarder_of, with_forwarder

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit, Sink

pytestmark = pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])


def test_a_batch_without_metrics_is_not_sent(kit: Kit, protocol: str) -> None:
    batch = [kit.record("orders"), kit.record("billing")]

    sink = with_forwarder(protocol, kit, lambda forwarder, _: forwarder.deliver(batch))

    assert sink.bodies == []


def test_an_endpoint_that_is_down_is_a_retry(kit: Kit, protocol: str) -> None:
    async def run() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            forwarder = forwarder_of(protocol, f"http://127.0.0.1:{unused.getsockname()[1]}")
            await forwarder.start()
            with pytest.raises(Retry, match="UNAVAILABLE" if protocol == "grpc" else "ClientConnectorError"):
                await forwarder.deliver([kit.record("orders", "a")])
            await forwarder.close()

    asyncio.run(run())


def test_the_forwarder_continues_after_each_fault(kit: Kit, protocol: str) -> None:
    faults = [kit.answer(cut=True), kit.answer(status=503), kit.answer(status=400)]
    if protocol == "grpc":
        faults = [kit.answer(code=grpc.StatusCode.UNAVAILABLE), kit.answer(code=grpc.StatusCode.INTERNAL)]

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        for _fault in faults:
            with pytest.raises((Retry, Reject)):
                await forwarder.deliver([kit.record("orders", "a")])
        await forwarder.deliver([kit.record("orders", "a")])

    sink = with_forwarder(protocol, kit, deliver, *faults)

    assert len(sink.bodies) == len(faults) + 1


def test_partial_success_is_counted_and_not_raised(
    kit: Kit, caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    def partial(points: int, message: str = "") -> object:
        success = ExportMetricsPartialSuccess(rejected_data_points=points, error_message=message)
        body = ExportMetricsServiceResponse(partial_success=success).SerializeToString()
        return kit.answer(body=body)

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        for refused in (3, 10, 10):
            await forwarder.deliver([kit.record("orders", "a")])
            assert forwarder.refused_points.total() == refused

    with_forwarder(protocol, kit, deliver, partial(3, "out of order"), partial(7), partial(0, "prefer v2"))

    told = [(row.__dict__["rejected_data_points"], row.__dict__["problem"]) for row in caplog.records]
    assert told == [(3, "out of order"), (7, ""), (0, "prefer v2")]


def test_close_works_without_start_and_twice(kit: Kit, protocol: str) -> None:
    async def run() -> None:
        forwarder = forwarder_of(protocol, "http://127.0.0.1:1")
        await forwarder.close()
        await forwarder.start()
        await forwarder.close()
        await forwarder.close()

    asyncio.run(run())
