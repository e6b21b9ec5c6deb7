"""The loop of a plugin's thread."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from odradek.plugin.places import place_of
from odradek.plugin.plugin_stats import described
from odradek.process.limits import new_loop

log = logging.getLogger(__name__)


def plugin_loop(name: str) -> asyncio.AbstractEventLoop:
    """Make a loop that tells of the plugin's own tasks and callbacks that die."""
    loop = new_loop()
    loop.set_exception_handler(partial(died, name))
    return loop


def died(name: str, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The exception handler. What only waits when the loop ends has no error, and is not told."""
    error = context.get("exception")
    if error is None:
        return
    task = context.get("task") or context.get("future")
    coroutine: Any = task.get_coro() if isinstance(task, asyncio.Task) else None
    what = "callback" if coroutine is None else f"task {getattr(coroutine, '__qualname__', coroutine)}"
    log.error(
        "plugin %s: its %s died: %s%s; what it did is not done until the next start",
        name,
        what,
        described(error),
        place_of(error, called=True),
        exc_info=error,
        extra={"plugin": name},
    )
