"""Many large requests at once, on real sockets: all are answered, and the memory stays within its limit."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

import pytest

from odradek.net.channel import Channel
from odradek.net.held_bytes import CHECK_MS
from odradek.net.large_frame import SHARED_BUFFER_BYTES
from support.broker_listener import BrokerListener
from support.loops import loops
from support.memory import memory_of

CLIENTS = 6
REQUEST_BYTES = 4_700_000
LIMIT_BYTES = 10_000_000
TIMEOUT_S = 20
NEVER_MS = 1 << 40
"""The clock of the test is faster than its sockets."""


class SizeDispatcher:
    """Answers each frame with its length."""

    def answer(self, frame: bytes | memoryview, offset: int, _connection: object) -> bytes:
        return struct.pack(">i", len(frame) - offset)


async def sent(address: tuple[str, int], request: bytes) -> int:
    """The answer to a request."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    writer.close()
    await writer.wait_closed()
    return int(size)


async def answers_and_peak() -> tuple[list[int], int, int]:
    """The answers to large requests and to a small one, and the most that was held."""
    loop = asyncio.get_running_loop()
    listener = BrokerListener(call_soon=loop.call_soon)
    listener.dispatcher = SizeDispatcher()  # type: ignore[assignment]
    listener.shared_buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))
    listener.memory = memory_of(
        listener.clock, LIMIT_BYTES, max_request_bytes=REQUEST_BYTES, stalled_ms=NEVER_MS
    )
    requests = listener.memory.requests
    server = await loop.create_server(lambda: Channel(listener), "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    large = struct.pack(">i", REQUEST_BYTES) + bytes(REQUEST_BYTES)
    peak = 0
    async with server, asyncio.timeout(TIMEOUT_S):
        held_back = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, writer in held_back:
            writer.write(large[:-1])
        while not requests.is_exceeded:
            await asyncio.sleep(0.001)
        small = await sent(address, struct.pack(">i", 5) + b"small")
        others = [asyncio.create_task(sent(address, large)) for _ in range(CLIENTS)]
        for _, writer in held_back:
            writer.write(large[-1:])
        while not all(task.done() for task in others):
            peak = max(peak, requests.total_bytes)
            await asyncio.sleep(0.001)
            listener.clock.advance(CHECK_MS)
        for reader, writer in held_back:
            await reader.readexactly(4)
            writer.close()
            await writer.wait_closed()
        return [small, *await asyncio.gather(*others)], peak, requests.closed


@pytest.mark.parametrize("huge_bytes", [1 << 22, 1 << 30], ids=["pages", "heap"])
@pytest.mark.parametrize("new_loop", loops())
def test_large_requests_take_turns(
    new_loop: Callable[[], asyncio.AbstractEventLoop], huge_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.net.large_frame.HUGE_FRAME_BYTES", huge_bytes)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        answers, peak, closed = runner.run(answers_and_peak())

    assert answers == [5] + [REQUEST_BYTES] * CLIENTS
    assert peak < LIMIT_BYTES + REQUEST_BYTES + (CLIENTS + 3) * SHARED_BUFFER_BYTES
    assert closed == 0
