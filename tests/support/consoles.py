"""A console that serves its pages in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn

from odradek.client.admin import AdminClient
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.view import TOPIC, View, ViewSettings
from odradek_console.web.app import make_app
from odradek_console.web.console import Console
from support.waiting import wait_until

PATIENCE_S: Final = 60
STREAM_INTERVAL_S: Final = 0.2
GRACE_S: Final = 10


@contextmanager
def console_site(bootstrap: str, settings: ViewSettings | None = None, **bounds: Any) -> Iterator[str]:
    """Serve the pages of a cluster on a free port of 127.0.0.1, and yield their URL.

    Args:
        bootstrap: The bootstrap servers.
        settings: What the console reads.
        bounds: Further fields of `Console`.
    """
    connect = partial(AdminClient, bootstrap)
    with View(connect, settings) as view:
        cluster = ClusterView(connect, view.settings.topic if settings else TOPIC)
        console = Console(
            view=view,
            cluster=cluster,
            connect=connect,
            cluster_name=bootstrap,
            **{"stream_interval_s": STREAM_INTERVAL_S} | bounds,
        )
        wait_until(lambda: view.reader.progress.is_caught_up, lambda: view.reading(), PATIENCE_S)
        with served(console) as url:
            yield url


@contextmanager
def served(console: Console) -> Iterator[str]:
    """Serve a console until the body ends."""
    config = uvicorn.Config(
        make_app(console), log_level="warning", lifespan="off", timeout_graceful_shutdown=GRACE_S
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            wait_until(lambda: server.started, "a started server", PATIENCE_S)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            console.stopping.set()
            server.should_exit = True
            thread.join()
