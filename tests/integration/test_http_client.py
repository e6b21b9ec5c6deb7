"""The client of HTTP endpoints and an endpoint that accepts connections, but never reads."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek.endpoints.tls_files import TlsFiles
from odradek.plugin import Retry
from support.issuer import own_certificate
from support.waiting import PATIENCE_S, until

BODY = bytes(20 << 20)
"""More than the kernel keeps for the two ends of a connection."""
Work = Callable[[HttpClient, int], Awaitable[None]]
"""With an open client and the port of its endpoint."""


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def with_client(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int, Work], None]:
    """Run a coroutine with a client that has a timeout in milliseconds."""
    certificate, context = own_certificate(tmp_path)

    async def run(timeout_ms: int, work: Work) -> None:
        async with hanging(context if request.param else None) as port:
            url = f"{'https' if request.param else 'http'}://127.0.0.1:{port}/"
            files = TlsFiles(ca=certificate)
            client = HttpClient(
                HttpTarget(url=url, secure=request.param, tls=files, timeout_ms=timeout_ms), {}
            )
            await client.open()
            try:
                await work(client, port)
            finally:
                await client.close()

    return lambda timeout_ms, work: asyncio.run(run(timeout_ms, work))


class Deaf(asyncio.Protocol):
    """Never reads."""

    def __init__(self, transports: list[asyncio.Transport]) -> None:
        self.transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self.transports.append(transport)


@asynccontextmanager
async def hanging(tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """An endpoint that accepts connections, and its port."""
    transports: list[asyncio.Transport] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Deaf(transports), "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for transport in transports:
            transport.abort()


def unsent_bytes(port: int) -> list[int]:
    """The unsent bytes of each socket that is connected to a port and that a program has open.

    The kernel may keep a closed socket for a while, without an inode.
    """
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return [int(row[4][:8], 16) for row in rows if row[2].endswith(f":{port:04X}") and row[9] != "0"]


def test_requests_without_an_answer_leave_no_connection(with_client: Callable[[int, Work], None]) -> None:
    async def work(client: HttpClient, port: int) -> None:
        for _ in range(3):
            with pytest.raises(Retry, match="no answer within 200 ms"):
                await client.post(BODY, {})
        await until(lambda: not unsent_bytes(port))

    with_client(200, work)


def test_close_ends_a_request_that_is_being_sent(with_client: Callable[[int, Work], None]) -> None:
    async def work(client: HttpClient, port: int) -> None:
        sending = asyncio.create_task(client.post(BODY, {}))
        await until(lambda: sum(unsent_bytes(port)) > 100_000)
        async with asyncio.timeout(PATIENCE_S):
            await client.close()

        with pytest.raises(Retry):
            await sending
        await until(lambda: not unsent_bytes(port))

    with_client(60_000, work)
