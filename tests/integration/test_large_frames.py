"""Large requests on real sockets, where the transport switches protocols in the middle of a frame."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from odradek.bounds.sampled_log import SampledLog
from odradek.net.channel import Channel
from odradek.net.large_frame import SHARED_BUFFER_BYTES
from odradek.net.turns import Turns, TurnSettings
from odradek.plugin.context import ConnectionContext
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from support.loops import loops
from support.memory import memory_of

CLIENTS = 4
LARGE_BYTES = 1_000_000
SIZES = (1, 70_000, 2_000_000, 3, 1_000_000, 65_536, 65_535, 5_000_000, 2)


class SizeDispatcher:
    """Answers each frame with its length and its last byte."""

    def answer(self, frame: bytes | memoryview, offset: int, _connection: object) -> bytes:
        return struct.pack(">iB", len(frame) - offset, frame[-1])


class SmallListener:
    """The parts of a listener that a channel needs."""

    def __init__(self) -> None:
        self.dispatcher = SizeDispatcher()
        self.clock = MockClock()
        self.max_request_bytes = 8_000_000
        self.draining = False
        self.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
        self.refused = 0
        self.refused_log = SampledLog(logging.getLogger("odradek.test"))
        self.memory = memory_of(self.clock)
        self.turns = Turns(self.clock, TurnSettings())

    def opened(self, _channel: Channel, _transport: asyncio.Transport) -> ConnectionContext:
        return request_context().connection

    def closed(self, _channel: Channel, _in_order: bool) -> None:
        return


async def answers_to(requests: bytes, count: int) -> list[tuple[int, int]]:
    """A channel's answers to a stream of requests."""
    listener = SmallListener()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Channel(listener), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(requests)
        answers = await asyncio.wait_for(reader.readexactly(5 * count), 20)
        writer.close()
        await writer.wait_closed()
    return list(struct.iter_unpack(">iB", answers))


@pytest.mark.parametrize("huge_bytes", [1_500_000, 1 << 30], ids=["pages", "heap"])
@pytest.mark.parametrize("new_loop", loops())
def test_large_and_small_requests_are_answered_in_order(
    new_loop: Callable[[], asyncio.AbstractEventLoop], huge_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.net.large_frame.HUGE_FRAME_BYTES", huge_bytes)
    expected = [(size, number) for number, size in enumerate(SIZES)]
    frames = [struct.pack(">i", size) + bytes(size - 1) + bytes([last]) for size, last in expected]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        answered = runner.run(answers_to(b"".join(frames), len(frames)))

    assert answered == expected


@pytest.fixture
def traced_memory() -> Iterator[None]:
    """Count the memory of Python objects. No cycle of references is collected."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


async def held_by_clients() -> tuple[int, int]:
    """Bytes in use while clients are idle after a large request, and when they have left in the middle of
    another one.
    """
    listener = SmallListener()
    loop = asyncio.get_running_loop()
    request = struct.pack(">i", LARGE_BYTES) + bytes(LARGE_BYTES)
    server = await loop.create_server(lambda: Channel(listener), "127.0.0.1", 0)
    async with server, asyncio.timeout(20):
        clients = [await asyncio.open_connection(*server.sockets[0].getsockname()) for _ in range(CLIENTS)]
        before = tracemalloc.get_traced_memory()[0]
        for reader, writer in clients:
            writer.write(request)
            await reader.readexactly(5)
        idle = tracemalloc.get_traced_memory()[0] - before
        for _, writer in clients:
            writer.write(request[:-1])
        while listener.memory.requests.total_bytes < CLIENTS * LARGE_BYTES:
            await asyncio.sleep(0.001)
        for _, writer in clients:
            writer.close()
            await writer.wait_closed()
        while listener.memory.requests.total_bytes:
            await asyncio.sleep(0.001)
        return idle, tracemalloc.get_traced_memory()[0] - before


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("new_loop", loops())
def test_a_connection_keeps_no_large_request(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        idle, lost = runner.run(held_by_clients())

    assert idle < LARGE_BYTES / 2
    assert lost < LARGE_BYTES / 2
