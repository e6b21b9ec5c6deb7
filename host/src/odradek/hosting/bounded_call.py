"""Calls of a plugin that end in time, no matter what the plugin does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from odradek.plugin.plugin_stats import described

CANCEL_GRACE_S = 0.2
"""Time that a cancelled call has to end."""


class CutOffError(Exception):
    """A call of the plugin took too long."""


async def bounded(work: Callable[[], Awaitable[None]], timeout_s: float) -> None:
    """Call the plugin.

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
        await cancel(task)
        raise CutOffError(f"took longer than {timeout_s:g} s")
    if task.cancelled():
        raise TimeoutError("cancelled")
    try:
        task.result()
    finally:
        del task  # its error holds this frame


async def cancel(task: asyncio.Future[None]) -> None:
    """Cancel and wait briefly."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def guarded(work: Callable[[], Awaitable[None]]) -> None:
    """Await the plugin; turn exceptions that would end the thread into ordinary errors."""
    try:
        await work()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(described(error)) from error


async def waited(event: asyncio.Event, timeout_ms: int | None) -> None:
    """Wait for the event, at most for the time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()
