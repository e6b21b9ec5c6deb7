"""A listener for scrapes on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from odradek.endpoints import Address
from odradek.process.limits import new_loop
from odradek.temporality import TotalsSettings
from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.scrape_listener import ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings


@contextmanager
def served(clients: list[ClientSeries], **settings: Any) -> Iterator[int]:
    """Serve these clients, which may change; yield the port."""
    loop = new_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    address = Address("127.0.0.1", 0)
    listener = ScrapeListener(
        ScrapeSettings(address=address, totals=TotalsSettings(), **settings), lambda: list(clients)
    )
    try:
        asyncio.run_coroutine_threadsafe(listener.start(), loop).result(30)
        yield listener.port
    finally:
        asyncio.run_coroutine_threadsafe(listener.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
