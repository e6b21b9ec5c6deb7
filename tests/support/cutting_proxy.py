"""A proxy on the loopback interface that delays what passes, and cuts its connections when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future

START_LIMIT_S = 10


class CuttingProxy:
    """Passes connections on to one port.

    Args:
        target: A port of this machine.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay_s = 0.0
        """Before each chunk, in both directions."""
        self.cuts = 0
        self.writers: set[asyncio.StreamWriter] = set()
        self.loop = asyncio.new_event_loop()
        self.ended = asyncio.Event()
        self.bound: Future[int] = Future()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self.run(),))

    def cut(self) -> None:
        """Reset all connections. From another thread."""
        self.loop.call_soon_threadsafe(self.abort_all)

    def abort_all(self) -> None:
        self.cuts += len(self.writers)
        for writer in self.writers:
            writer.transport.abort()

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            with contextlib.suppress(OSError):
                while data := await reader.read(65_536):
                    await asyncio.sleep(self.delay_s)
                    writer.write(data)
                    await writer.drain()
        finally:
            self.writers.discard(writer)
            writer.close()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.pump(reader, far_writer), self.pump(far_reader, writer))

    async def run(self) -> None:
        async with await asyncio.start_server(self.connected, "127.0.0.1", 0) as server:
            self.bound.set_result(server.sockets[0].getsockname()[1])
            await self.ended.wait()
            server.close()
            while self.writers:
                self.abort_all()
                await asyncio.sleep(0.01)


@contextlib.contextmanager
def cutting_proxy(target: int) -> Iterator[tuple[CuttingProxy, int]]:
    """A running proxy and its port."""
    proxy = CuttingProxy(target)
    proxy.thread.start()
    try:
        yield proxy, proxy.bound.result(START_LIMIT_S)
    finally:
        proxy.loop.call_soon_threadsafe(proxy.ended.set)
        proxy.thread.join()
        proxy.loop.close()
