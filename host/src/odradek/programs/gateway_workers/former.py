"""Delivers what a former worker has left: a host without listeners, until its forwarders are done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from odradek.programs.config import HostConfig
from odradek.programs.host import Host

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5


@asynccontextmanager
async def delivering(config: HostConfig, failed: Callable[[str], None]) -> AsyncIterator[Host]:
    """Run the host in the body of the statement.

    Args:
        config: The configuration of the former worker.
        failed: Called with the reason if the host has to stop.

    Raises:
        ConfigError: The folder or a plugin cannot be used.
    """
    host = Host(replace(config, listeners=(), advertised_listeners=None), failed=failed)
    host.companions.runners = []
    host.sources.runners = []
    try:
        await host.start()
        yield host
    finally:
        await host.stop()


async def delivered(host: Host, stop: asyncio.Event) -> None:
    """Wait until all forwarders have delivered the log, or the event is set."""
    while not stop.is_set() and any(left(host)):
        await asyncio.wait([asyncio.ensure_future(stop.wait())], timeout=LOOK_S)
    if not stop.is_set():
        log.info("everything is delivered; the folder of this worker can go")


def left(host: Host) -> list[int]:
    """The records that each forwarder has not settled."""
    return [stats.queued + stats.in_flight for stats in (each.stats() for each in host.forwarders)]
