"""A console that serves its pages in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from starlette.types import ASGIApp

from odradek.client.admin import AdminClient
from odradek.endpoints import Address
from odradek_console.view import View, ViewSettings
from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from odradek_console.web.server import WebServer
from odradek_console.web.server_settings import ServerSettings
from odradek_console.web.users import Role
from support.waiting import wait_until

PATIENCE_S: Final = 60
STREAM_INTERVAL_S: Final = 0.2
MANY: Final = 1_000
LISTEN: Final = Address("127.0.0.1", 0)


@contextmanager
def console_site(
    bootstrap: str,
    *,
    clients: int = 0,
    port: int = 0,
    settings: ViewSettings | None = None,
    access: Access | None = None,
) -> Iterator[str]:
    """Serve the pages of a cluster on 127.0.0.1, and yield their URL.

    Args:
        bootstrap: The bootstrap servers.
        port: The port; 0 for a free one.
        clients: Wait until so many clients have pushed.
        settings: What the console reads.
        access: Who may look and act; None: everybody.
    """
    connect = partial(AdminClient, bootstrap)
    rights = AccessSettings(local_role=Role.OPERATOR, requests_per_second=MANY)
    view = View(connect, settings)
    console = make_console(view, connect, bootstrap, access or Access(rights, LISTEN))
    console.stream_interval_s = STREAM_INTERVAL_S
    with console:
        wait_until(
            lambda: view.reader.progress.is_caught_up and len(view.clients()) >= clients,
            view.reading,
            PATIENCE_S,
        )
        with served(console, port) as url:
            yield url


@contextmanager
def served(console: Console, port: int = 0) -> Iterator[str]:
    """Serve a console until the body ends, and yield its URL."""
    with serving(console, ServerSettings(address=LISTEN._replace(port=port))) as server:
        yield server.url.rstrip("/")


@contextmanager
def serving(console: Console, settings: ServerSettings, app: ASGIApp | None = None) -> Iterator[WebServer]:
    """Serve a console, or another application, in a thread until the body ends."""
    is_ready = threading.Event()
    pages = app or make_app(console)
    server = WebServer(pages, settings, lambda url: is_ready.set(), console.server)
    thread = threading.Thread(target=server.run_until_stopped)
    thread.start()
    try:
        assert is_ready.wait(PATIENCE_S)
        yield server
    finally:
        console.stopping.set()
        server.stop()
        thread.join()
