"""A connection of a source, a page for scrapes or the console leaves nothing, whatever its end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from odradek.endpoints import Address, ListenerTls
from odradek.temporality import TotalsSettings
from odradek_console.web.server import WebServer
from odradek_console.web.server_settings import ServerSettings
from odradek_otlp.http_listener import HttpListener
from odradek_otlp.reception import Reception
from odradek_otlp.source_settings import SourceSettings
from odradek_prometheus.scrape_listener import ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings
from support.certificates import Files
from support.left_behind import (
    Client,
    connection,
    context,
    ended,
    half_closes,
    hello,
    left_by,
    left_by_loop,
    over_tls,
    resets,
    says,
    sends,
    waits_after,
)
from support.loops import loops
from support.otlp_source import ScriptedIntake

pytestmark = pytest.mark.ci

ANYWHERE = Address("127.0.0.1", 0)
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
GARBAGE = b"\xff" * 64 + b"\r\n\r\n"
HELLO = hello(context())

Listening = tuple[int, Callable[[], bool]]
"""A port, and whether no connection is open."""
Served = Callable[[ListenerTls | None], contextlib.AbstractAsyncContextManager[Listening]]


@contextlib.asynccontextmanager
async def source(tls: ListenerTls | None) -> AsyncIterator[Listening]:
    """A source of OTLP over HTTP."""
    reception = Reception(SourceSettings(tls=tls), ScriptedIntake())
    listener = HttpListener(ANYWHERE, reception)
    port = await listener.start()
    assert listener.server is not None
    server = listener.server
    yield port, lambda: not server.open_connections()
    await listener.stop()
    await reception.close()


@contextlib.asynccontextmanager
async def page(tls: ListenerTls | None) -> AsyncIterator[Listening]:
    """The page that Prometheus scrapes."""
    listener = ScrapeListener(ScrapeSettings(address=ANYWHERE, totals=TotalsSettings(), tls=tls), list)
    await listener.start()
    assert listener.server is not None
    server = listener.server
    yield listener.port, lambda: not server.open_connections()
    await listener.stop()


@contextlib.asynccontextmanager
async def console(tls: ListenerTls | None) -> AsyncIterator[Listening]:
    """The server of the console."""
    answer: Any = PlainTextResponse("a page")
    server = WebServer(answer, ServerSettings(address=ANYWHERE, tls=tls), lambda url: None)
    task = asyncio.create_task(server.serve([server.socket]))
    await ended(lambda: server.started)
    yield server.port, lambda: not server.open_connections()
    server.stop()
    await task


SERVED: dict[str, Served] = {"source": source, "page": page, "console": console}
ENDS: dict[str, Client] = {
    "nothing": lambda plain: None,
    "complete": says(REQUEST, REQUEST),
    "closed by the server": waits_after(sends(REQUEST[:-2] + b"Connection: close\r\n\r\n")),
    "six bytes": sends(REQUEST[:6]),
    "half a request": sends(REQUEST[:-2]),
    "garbage": waits_after(sends(GARBAGE)),
    "reset": resets(says(REQUEST)),
    "half-close": half_closes(says(REQUEST[:-2] + b"Connection: close\r\n\r\n")),
}
HANDSHAKES: dict[str, Client] = {
    "nothing": lambda plain: None,
    "six bytes": sends(HELLO[:6]),
    "a hello": says(HELLO),
    "a hello, then half-closed": half_closes(says(HELLO)),
    "a hello, then a reset": resets(says(HELLO)),
    "a hello, then garbage": waits_after(says(HELLO, GARBAGE)),
    "garbage": waits_after(sends(GARBAGE)),
    "no trust": over_tls(context(trusts=False), lambda secret: None),
    "a plain request": waits_after(sends(REQUEST)),
}


def secure_loops() -> list[Any]:
    """The loops that listeners with TLS may have."""
    return [each for each in loops() if each.id == "uvloop" or sys.version_info >= (3, 13)]


def left(
    folder: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, client: Client, *, tls: bool
) -> Counter[str]:
    """What a connection leaves, beside the garbage of the loop."""

    async def run() -> Counter[str]:
        files = ListenerTls(certificate=Path(Files(folder).server)) if tls else None
        async with SERVED[name](files) as (port, is_free):

            async def life() -> None:
                await asyncio.to_thread(connection, port, client)
                await ended(is_free)

            return await left_by(life) - await left_by_loop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(run())


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", SERVED)
def test_a_connection(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, end: str
) -> None:
    assert left(tmp_path, new_loop, name, ENDS[end], tls=False) == Counter()


@pytest.mark.parametrize("new_loop", secure_loops())
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", SERVED)
def test_a_connection_with_tls(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, end: str
) -> None:
    assert left(tmp_path, new_loop, name, over_tls(context(), ENDS[end]), tls=True) == Counter()


@pytest.mark.parametrize("new_loop", secure_loops())
@pytest.mark.parametrize("end", HANDSHAKES)
@pytest.mark.parametrize("name", SERVED)
def test_a_handshake_that_fails(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, end: str
) -> None:
    assert left(tmp_path, new_loop, name, HANDSHAKES[end], tls=True) == Counter()
