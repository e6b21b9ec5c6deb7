"""A port that leads to others in turn, as a load balancer does, or to one, as a container runtime maps it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from support.accepting import waiting_connections_are_made

START_LIMIT_S = 10


async def dial(targets: Sequence[int], first: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a target, or to the next one that accepts a connection.

    Raises:
        OSError: None does.
    """
    for place in range(first, first + len(targets)):
        with contextlib.suppress(OSError):
            return await asyncio.open_connection("127.0.0.1", targets[place % len(targets)])
    raise OSError("no target accepts a connection")


async def end(tasks: set[asyncio.Task[None]], writers: set[asyncio.StreamWriter]) -> None:
    """Close all connections."""
    while waiting := list(tasks):
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0.01)  # transports close their sockets in the next turn


async def forward(
    targets: Sequence[int], port: int, header: bytes, bound: Future[int], ended: asyncio.Event
) -> None:
    """Forward connections until the end, each to the next target that accepts it."""
    open_now: set[asyncio.Task[None]] = set()
    writers: set[asyncio.StreamWriter] = set()
    first = itertools.count()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            inside_reader, inside_writer = await dial(targets, next(first))
            writers.add(inside_writer)
            inside_writer.write(header)
            await asyncio.gather(pump(reader, inside_writer), pump(inside_reader, writer))

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        task = asyncio.create_task(serve(reader, writer))
        open_now.add(task)
        task.add_done_callback(open_now.discard)

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        bound.set_result(server.sockets[0].getsockname()[1])
        await ended.wait()
        await waiting_connections_are_made()
        server.close()
        await end(open_now, writers)


@contextlib.contextmanager
def mapped_to(*targets: int, port: int = 0, header: bytes = b"") -> Iterator[int]:
    """A port of the loopback interface that leads to the targets in turn; by default any free one.

    Connections to the targets begin with the header.
    """
    loop, ended, bound = asyncio.new_event_loop(), asyncio.Event(), Future[int]()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(forward(targets, port, header, bound, ended),)
    )
    thread.start()
    try:
        yield bound.result(START_LIMIT_S)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
