"""A connection of the client, and one to the metrics, leaves nothing, whatever its end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.meters.metrics_server import MetricsServer
from odradek.net.listener_tls import ListenerTls
from odradek.security.tls_settings import TlsSettings
from support.certificates import Files
from support.left_behind import (
    Client,
    connection,
    context,
    ended,
    hello,
    left_by,
    over_tls,
    resets,
    says,
    sends,
    waits_after,
)
from support.loopback_broker import Broker, answers_nothing, broker_of, speaks_no_tls, takes_a_request

pytestmark = pytest.mark.ci

REQUEST = b"GET /metrics HTTP/1.0\r\n\r\n"
HELLO = hello(context())

BROKERS: dict[str, tuple[Broker, bool]] = {
    "ends at once": (lambda client: None, False),
    "ends after a request": (takes_a_request, False),
    "resets": (resets(takes_a_request), False),
    "garbage": (speaks_no_tls, False),
    "no TLS": (speaks_no_tls, True),
    "ends in the handshake": (takes_a_request, True),
    "says nothing": (answers_nothing, False),
}
SCRAPERS: dict[str, tuple[Client, bool]] = {
    "nothing": (lambda plain: None, False),
    "complete": (waits_after(sends(REQUEST)), False),
    "half a request": (sends(REQUEST[:9]), False),
    "reset": (resets(says(REQUEST)), False),
    "complete with TLS": (over_tls(context(), waits_after(sends(REQUEST))), True),
    "half a hello": (sends(HELLO[:-9]), True),
    "garbage instead of TLS": (waits_after(sends(b"\xff" * 64)), True),
    "no trust": (over_tls(context(trusts=False), lambda secret: None), True),
}


@pytest.mark.parametrize("name", BROKERS)
def test_a_client_of_a_broker_that_fails(name: str) -> None:
    behavior, tls = BROKERS[name]

    async def left(port: int) -> Counter[str]:
        def ask() -> None:
            with (
                contextlib.suppress(ClientError),
                AdminClient(f"127.0.0.1:{port}", timeout_s=0.05, tls=context() if tls else None) as admin,
            ):
                admin.metadata([])

        async def life() -> None:
            await asyncio.to_thread(ask)

        return await left_by(life)

    with broker_of(behavior) as port:
        assert asyncio.run(left(port)) == Counter()


def page(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"a page\n"]


@pytest.mark.parametrize("name", SCRAPERS)
def test_a_connection_to_the_metrics(tmp_path: Path, name: str) -> None:
    client, tls = SCRAPERS[name]
    settings = TlsSettings(keystore_location=Files(tmp_path).server)
    server = MetricsServer("127.0.0.1", 0, page, ListenerTls("metrics", settings) if tls else None)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def is_free() -> bool:
        return not any("process_request" in each.name for each in threading.enumerate())

    async def left() -> Counter[str]:
        async def life() -> None:
            await asyncio.to_thread(connection, server.server_port, client)
            await ended(is_free)

        return await left_by(life)

    try:
        assert asyncio.run(left()) == Counter()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
