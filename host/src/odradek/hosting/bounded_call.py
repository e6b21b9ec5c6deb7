"""Calls of a plugin that end in time, no matter what the plugin does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from odradek.hosting.watched_call import suspended
from odradek.plugin.places import innermost
from odradek.plugin.plugin_stats import described

CANCEL_GRACE_S = 0.2
"""Time that a cancelled call has to end."""


class CutOffError(Exception):
    """A call of the plugin took too long."""

    where = ""
    """The line at which the plugin waited, in brackets."""


async def bounded(work: Callable[[], Awaitable[object]], timeout_s: float) -> object:
    """Call the plugin; return its answer.

    Raises:
        CutOffError: The call took too long. If it also ignores its cancellation, it is abandoned.
        TimeoutError: The plugin cancelled its own task.
    """
    task = asyncio.ensure_future(guarded(work))
    try:
        await asyncio.wait({task}, timeout=timeout_s)
    except asyncio.CancelledError:
        await cancel(task)
        raise
    if not task.done():
        error = CutOffError(f"took longer than {timeout_s:g} s")
        error.where = innermost(suspended(task.get_coro()))
        await cancel(task)
        raise error
    if task.cancelled():
        raise TimeoutError("cancelled")
    try:
        return task.result()
    finally:
        del task  # its error holds this frame


async def cancel(task: asyncio.Future[object]) -> None:
    """Cancel and wait briefly."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def guarded(work: Callable[[], Awaitable[object]]) -> object:
    """Await the plugin; turn exceptions that would end the thread into ordinary errors."""
    try:
        return await work()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(described(error)) from error


async def waited(event: asyncio.Event, timeout_ms: int | None) -> None:
    """Wait for the event, at most for the time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()
