"""Large requests on real sockets, where the transport switches protocols in the middle of a frame."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable

import pytest

from odradek.plugin.context import ConnectionContext
from odradek.sampled_log import SampledLog
from odradek.server.sockets.channel import Channel
from odradek.server.sockets.large_frame import SHARED_BUFFER_BYTES
from odradek.server.sockets.turns import Turns, TurnSettings
from odradek.testing.clock import MockClock
from support.loops import loops
from support.memory import memory_of

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
        return ConnectionContext("test", "PLAINTEXT", "PLAINTEXT", "127.0.0.1", 1, 1)

    def closed(self, _channel: Channel) -> None:
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
    monkeypatch.setattr("odradek.server.sockets.large_frame.HUGE_FRAME_BYTES", huge_bytes)
    expected = [(size, number) for number, size in enumerate(SIZES)]
    frames = [struct.pack(">i", size) + bytes(size - 1) + bytes([last]) for size, last in expected]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        answered = runner.run(answers_to(b"".join(frames), len(frames)))

    assert answered == expected
