"""Wait until the plugins listen that have addresses of their own."""

from __future__ import annotations

import asyncio
import logging
from threading import Event
from typing import Final

from odradek.plugin.protocols import Listens

log = logging.getLogger(__name__)

LISTEN_S: Final = 30.0
"""A plugin that takes longer does not hold up its program."""


async def listening(*plugins: tuple[object, Event]) -> None:
    """Wait until all listen, or have tried to.

    Args:
        plugins: What a plugin offers, which may be `Listens`, and what is set after the first attempt.
    """
    await asyncio.gather(
        *(tried(each.listens, event) for each, event in plugins if isinstance(each, Listens) and each.listens)
    )


async def tried(address: str, event: Event) -> None:
    """Wait until the event is set, at most for `LISTEN_S`."""
    if not await asyncio.to_thread(event.wait, LISTEN_S):
        extra = {"address": address, "after_s": LISTEN_S}
        log.warning("a plugin does not listen on %s after %g s", address, LISTEN_S, extra=extra)
