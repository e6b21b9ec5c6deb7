"""Clients that ask for much, on real sockets: the kernel sends their answers from the files as they read."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Segment
from odradek.net.channel import Channel
from odradek.net.sending import WAITING_BYTES, WRITE_HIGH_WATER_BYTES
from odradek.plugin.context import ConnectionContext
from odradek.wire.codec import decode
from odradek.wire.header import flexible_response_header, read_response_header
from odradek.wire.messages.fetch import FetchResponse
from support.batches import NOW_MS, batch_of
from support.broker_listener import BrokerListener, framed
from support.data_requests import fetch_request
from support.loops import loops
from support.waiting import until

BATCHES, VALUE_BYTES = 24, 500_000
EVERYTHING = 1 << 30
VERSION = 12
TIMEOUT_S = 20
NewLoop = Callable[[], asyncio.AbstractEventLoop]


@dataclass
class LoopListener(BrokerListener):
    """Remembers its channels."""

    channels: list[Channel] = field(default_factory=list)

    def opened(self, channel: Channel, transport: asyncio.Transport) -> ConnectionContext:
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self.channels.append(channel)
        return super().opened(channel, transport)

    @property
    def log(self) -> PartitionLog:
        return self.broker.topics.log("t", 0)


@asynccontextmanager
async def slow_readers(
    number: int, requests: bytes | None = None
) -> AsyncIterator[tuple[LoopListener, list[socket.socket]]]:
    """A broker with 12 MB in a topic, and clients that have asked for all of it and do not read yet."""
    loop = asyncio.get_running_loop()
    listener = LoopListener(call_soon=loop.call_soon)
    listener.broker.topics.create("t", 1, {"segment.bytes": "100000000", "max.message.bytes": "1000000"})
    for place in range(BATCHES):
        listener.log.append(batch_of(bytes([place]) * VALUE_BYTES), now_ms=NOW_MS)
    server = await loop.create_server(lambda: Channel(listener), "127.0.0.1", 0)
    clients = []
    async with server:
        for _ in range(number):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            client.setblocking(False)
            clients.append(client)
            await loop.sock_connect(client, server.sockets[0].getsockname())
            await loop.sock_sendall(client, requests or fetch())
        await until(lambda: len(listener.channels) == number)
        await until(lambda: all(channel.writing_paused for channel in listener.channels))
        try:
            yield listener, clients
        finally:
            for client in clients:
                client.close()
        await until(lambda: all(channel.closing for channel in listener.channels))


def fetch(offset: int = 0) -> bytes:
    return framed(fetch_request("t", offset, most=EVERYTHING), VERSION)


async def answer_to(client: socket.socket) -> bytes:
    """The records that a client receives."""
    data = await received(client, 4)
    data += await received(client, struct.unpack(">i", data)[0])
    _, start = read_response_header(memoryview(data), 4, flexible_response_header(FetchResponse, VERSION))
    response = decode(FetchResponse, VERSION, memoryview(data), start)
    return bytes(response.responses[0].partitions[0].records or b"")


async def received(client: socket.socket, size_bytes: int) -> bytearray:
    """So many bytes.

    Raises:
        EOFError: The connection has ended before.
    """
    loop = asyncio.get_running_loop()
    data = bytearray()
    async with asyncio.timeout(TIMEOUT_S):
        while len(data) < size_bytes:
            piece = await loop.sock_recv(client, min(size_bytes - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
    return data


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bytes of each read from a segment."""
    found: list[int] = []
    pread = Segment.pread

    def noting(segment: Segment, length: int, position: int) -> bytes:
        found.append(length)
        return pread(segment, length, position)

    monkeypatch.setattr(Segment, "pread", noting)
    return found


@pytest.mark.parametrize("new_loop", loops())
def test_unread_answers_are_not_in_memory(new_loop: NewLoop, read_bytes: list[int]) -> None:
    async def run() -> tuple[list[int], int, int]:
        async with slow_readers(5) as (listener, _):
            held = [channel.transport.get_write_buffer_size() for channel in listener.channels]
            return held, listener.memory.answers.total_bytes, sum(read_bytes)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        held, counted, read = runner.run(run())

    assert 0 < max(held) <= WAITING_BYTES
    assert sum(held) <= counted < 5 * 2 * WAITING_BYTES
    assert read < 5 * BATCHES * VALUE_BYTES / 50


@pytest.mark.parametrize("new_loop", loops())
def test_few_bytes_are_read_for_a_client_that_reads(new_loop: NewLoop, read_bytes: list[int]) -> None:
    async def run() -> tuple[int, int]:
        async with slow_readers(1) as (_, clients):
            return len(await answer_to(clients[0])), sum(read_bytes)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        sent, read = runner.run(run())

    assert read < sent / 50


@pytest.mark.parametrize("new_loop", loops())
def test_pipelined_answers_are_sent_in_order(new_loop: NewLoop) -> None:
    offsets = (BATCHES - 1, 0, BATCHES, BATCHES - 2, 0, BATCHES - 1)

    async def run() -> tuple[list[bytes], list[bytes]]:
        async with slow_readers(1, b"".join(map(fetch, offsets))) as (listener, clients):
            stored = [listener.log.read(each, EVERYTHING) for each in offsets]
            return stored, [await answer_to(clients[0]) for _ in offsets]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        stored, received = runner.run(run())

    assert received == stored


@pytest.mark.parametrize("new_loop", loops())
def test_what_the_kernel_cannot_send_is_read(new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: int, _file: int, _offset: int, _count: int) -> int:
        raise OSError(errno.EINVAL, "the file system cannot do that")

    async def run() -> tuple[bytes, bytes]:
        async with slow_readers(1) as (listener, clients):
            return listener.log.read(0, EVERYTHING), await answer_to(clients[0])

    monkeypatch.setattr(os, "sendfile", refuse)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        stored, received = runner.run(run())

    assert received == stored


@pytest.mark.parametrize("new_loop", loops())
def test_a_slow_reader_gets_everything_in_the_end(new_loop: NewLoop) -> None:
    async def run() -> tuple[bytes, list[bytes]]:
        async with slow_readers(2) as (listener, clients):
            stored = listener.log.read(0, EVERYTHING)
            listener.log.append(batch_of(b"later"), now_ms=NOW_MS)
            return stored, [await answer_to(client) for client in clients]

    with asyncio.Runner(loop_factory=new_loop) as runner:
        stored, received = runner.run(run())

    assert received == [stored, stored]


def delete_records(listener: LoopListener) -> None:
    listener.log.roll(NOW_MS)
    listener.log.append(batch_of(b"kept"), now_ms=NOW_MS)
    listener.log.delete_records(BATCHES)


def delete_topic(listener: LoopListener) -> None:
    topic = listener.broker.topics.named("t")
    assert topic is not None
    listener.broker.topics.delete(topic)


def unlink_and_delete(listener: LoopListener) -> None:
    """As when other logs have used all descriptors, and ``file.delete.delay.ms`` is over."""
    listener.log.segments[0].release()
    delete_records(listener)
    for grave in listener.log.graves:
        grave.path.unlink()


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("remove", [delete_records, delete_topic, unlink_and_delete])
def test_records_that_are_deleted_meanwhile_are_sent(
    new_loop: NewLoop, remove: Callable[[LoopListener], None]
) -> None:
    async def run() -> tuple[bytes, bytes]:
        async with slow_readers(1) as (listener, clients):
            stored = listener.log.read(0, EVERYTHING)
            remove(listener)
            return stored, await answer_to(clients[0])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        stored, received = runner.run(run())

    assert received == stored


@pytest.mark.parametrize("new_loop", loops())
def test_a_file_that_lost_its_end_closes_the_connection(new_loop: NewLoop) -> None:
    async def run() -> None:
        async with slow_readers(1) as (listener, clients):
            segment = listener.log.segments[0]
            with segment.path.open("r+b") as file:
                file.truncate(segment.size_bytes - 1)
            with pytest.raises((EOFError, ConnectionResetError)):
                await answer_to(clients[0])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
