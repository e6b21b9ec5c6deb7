"""Delivers what a former worker has left: the log and the forwarders of a gateway, until they are done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from odradek.group.group_offsets import GroupOffsets
from odradek.programs.config import HostConfig
from odradek.programs.ground import Ground
from odradek.programs.plugins import Plugins
from odradek.programs.pushes import Pushes
from odradek.programs.spine import Spine

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5


@asynccontextmanager
async def delivering(config: HostConfig, failed: Callable[[str], None]) -> AsyncIterator[Spine]:
    """Run the forwarders on the log in the body of the statement.

    Args:
        config: The configuration of the former worker.
        failed: Called with the reason if they have to stop.

    Raises:
        ConfigError: The folder or a plugin cannot be used.
    """
    spine = Spine(replace(config, listeners=(), advertised_listeners=None))
    plugins = Plugins(spine, None)
    ground = Ground(spine, plugins, failed)
    with ground.storage.closed_on_error():
        with ground.storage.loading():
            offsets = GroupOffsets(ground.storage.offsets)
        pushes = Pushes(spine, plugins, ground, offsets, origin="", runs_sources=False)
    spine.parts += [
        ground.files,
        plugins.part,
        pushes.subscriptions,
        *spine.base,
        ground.work,
        pushes.delivery,
        pushes.opening,
    ]
    try:
        await spine.start()
        yield spine
    finally:
        await spine.stop()


async def delivered(spine: Spine, stop: asyncio.Event) -> None:
    """Wait until all forwarders have delivered the log, or the event is set."""
    while not stop.is_set() and any(left(spine)):
        await asyncio.wait([asyncio.ensure_future(stop.wait())], timeout=LOOK_S)
    if not stop.is_set():
        log.info("everything is delivered; the folder of this worker can go")


def left(spine: Spine) -> list[int]:
    """The records that each forwarder has not settled."""
    return [stats.queued + stats.in_flight for stats in (each.stats() for each in spine.forwarders)]
