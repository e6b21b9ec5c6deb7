"""One address cannot take all connections of a listener of HTTP."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.endpoints import Address
from odradek.meters.metrics_server import MetricsServer, SilentHandler
from odradek.temporality import TotalsSettings
from odradek_console.view import View
from odradek_console.web.console import make_console
from odradek_console.web.server_settings import ServerSettings
from odradek_prometheus.scrape_listener import ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings
from support.consoles import serving
from support.otlp_source import ANYWHERE, ScriptedIntake, running_source
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
PATIENCE_S = 60.0
NEIGHBOR = "127.0.0.2"
"""The address of a stranger. Each address of 127.0.0.0/8 is one of this machine on Linux."""
HALF = b"GET /metrics HTTP/1.1\r\nHost: loc"
NOBODY = "127.0.0.1:1"
SLOWEST = "OTLP source"
"""Takes seconds for its many connections."""


@contextmanager
def console() -> Iterator[int]:
    """A console whose cluster is away."""

    def connect() -> AdminClient:
        return AdminClient(NOBODY)

    settings = ServerSettings(address=Address("127.0.0.1", 0), header_timeout_s=PATIENCE_S)
    with serving(make_console(View(connect), connect, NOBODY), settings) as server:
        yield server.port


@contextmanager
def otlp_source() -> Iterator[int]:
    with running_source(ScriptedIntake(), http=ANYWHERE) as port:
        yield port


@contextmanager
def prometheus_page() -> Iterator[int]:
    totals = TotalsSettings(file=Path("unused"))
    listener = ScrapeListener(ScrapeSettings(address=Address("127.0.0.1", 0), totals=totals), list)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(listener.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield listener.port
    finally:
        asyncio.run_coroutine_threadsafe(listener.stop(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@contextmanager
def metrics_endpoint(limit_s: float = PATIENCE_S) -> Iterator[int]:
    with (
        pytest.MonkeyPatch.context() as patched,
        MetricsServer("127.0.0.1", 0, nothing, None) as server,
    ):
        patched.setattr(SilentHandler, "timeout", limit_s)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(PATIENCE_S)


def nothing(_: object, start_response: Callable[..., object]) -> list[bytes]:
    start_response("200 OK", [])
    return []


LISTENERS = {
    "console": (console, 500),
    "OTLP source": (otlp_source, 1_000),
    "Prometheus page": (prometheus_page, 64),
    "metrics endpoint": (metrics_endpoint, 64),
}
"""Each with its limit of connections."""


def is_answered(port: int, address: str) -> bool:
    """Whether a request of an address has an answer, of whatever kind."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=PATIENCE_S, source_address=(address, 0)
    )
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def half_request(port: int) -> socket.socket:
    """A connection of the neighbor that does not end its request."""
    found = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(NEIGHBOR, 0))
    with suppress(ConnectionError):  # it was one too many
        found.sendall(HALF)
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.ci] * (name == SLOWEST)) for name in LISTENERS]
)
def test_half_requests_of_one_address_refuse_nobody_else(name: str) -> None:
    listener, limit = LISTENERS[name]
    with listener() as port, ExitStack() as stack:
        for _ in range(limit + 10):
            stack.enter_context(half_request(port))
        wait_until(lambda: not is_answered(port, NEIGHBOR), "the neighbor has its share", PATIENCE_S)

        assert all(is_answered(port, "127.0.0.1") for _ in range(20))

        stack.close()
        wait_until(lambda: is_answered(port, NEIGHBOR), "its share is free again", PATIENCE_S)


def test_a_request_for_metrics_has_its_time_however_slowly_it_comes() -> None:
    with metrics_endpoint(limit_s=0.5) as port, half_request(port) as slow:
        slow.settimeout(0.05)

        def is_closed() -> bool:
            try:
                slow.sendall(b"x")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(is_closed, "the connection is closed", PATIENCE_S)
