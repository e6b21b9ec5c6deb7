"""The contract kit of the host, over HTTP and gRPC, with an endpoint that can be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import grpc
import pytest

from odradek.plugin import PluginConfig
from odradek.testing.contracts import FarSideState, ForwarderContract, Subject
from odradek_otlp import odradek_forwarder

Kit = Any
"""From conftest."""


class EndpointSide:
    """An endpoint on its own thread and loop; while it is down, its port is closed."""

    def __init__(self, open_endpoint: Callable[..., AbstractAsyncContextManager[Any]], kit: Kit) -> None:
        self.open_endpoint = open_endpoint
        self.answer = kit.answer
        self.loop = asyncio.new_event_loop()
        self.state = FarSideState.UP
        self.taken: list[bytes] = []
        self.port = 0
        self.running: AbstractAsyncContextManager[Any] | None = None
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.wait(self.listen())

    def wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def turn(self, state: FarSideState) -> None:
        self.state = state
        self.wait(self.silence() if state is FarSideState.DOWN else self.listen())

    def received(self) -> Iterable[bytes]:
        return list(self.taken)

    async def listen(self) -> None:
        if self.running is None:
            self.running = self.open_endpoint(port=self.port)
            sink = await self.running.__aenter__()
            self.port, sink.judge = sink.port, self.judge

    async def silence(self) -> None:
        if self.running is not None:
            running, self.running = self.running, None
            await running.__aexit__(None, None, None)

    def judge(self, body: bytes) -> Any:
        if self.state is FarSideState.REFUSING:
            return self.answer(status=400, code=grpc.StatusCode.INVALID_ARGUMENT, message="no")
        if self.state is FarSideState.SLOW:
            return self.answer(delay_s=0.4)
        self.taken.append(body)
        return self.answer()

    def close(self) -> None:
        self.wait(self.silence())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@contextmanager
def far_side(
    open_endpoint: Callable[..., AbstractAsyncContextManager[Any]], kit: Kit
) -> Iterator[EndpointSide]:
    side = EndpointSide(open_endpoint, kit)
    try:
        yield side
    finally:
        side.close()


def subject_of(side: EndpointSide, protocol: str, **keys: str) -> Subject:
    table: dict[str, object] = {
        "endpoint": f"http://127.0.0.1:{side.port}",
        "protocol": protocol,
        "timeout.ms": 5_000,
    }
    table |= {key.replace("_", "."): value for key, value in keys.items()}
    return Subject(
        make=lambda: odradek_forwarder(PluginConfig("plugins.otlp", table)),
        far_side=side,
        declares=frozenset({"concurrent"}),
        patience_s=6,
    )


class TestOverHttp(ForwarderContract):
    @pytest.fixture
    def subject(self, kit: Kit) -> Iterator[Subject]:
        with far_side(kit.http, kit) as side:
            yield subject_of(side, "http/protobuf")


class TestOverGrpc(ForwarderContract):
    @pytest.fixture
    def subject(self, kit: Kit) -> Iterator[Subject]:
        with far_side(kit.grpc, kit) as side:
            yield subject_of(side, "grpc")


class TestWithTotals(ForwarderContract):
    @pytest.fixture
    def subject(self, kit: Kit, tmp_path: Path) -> Iterator[Subject]:
        with far_side(kit.http, kit) as side:
            totals = str(tmp_path / "totals.db")
            yield subject_of(side, "http/protobuf", temporality="cumulative", totals_file=totals)
