"""Calls of a plugin that end in time, whatever the plugin does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

CANCEL_GRACE_S = 0.2
"""How long a call that was cancelled may take to notice."""


class CutOffError(Exception):
    """A call of the plugin took too long."""


async def bounded(work: Callable[[], Awaitable[None]], timeout_s: float) -> None:
    """Call the plugin.

    Raises:
        CutOffError: It took too long. When it ignores its cancellation too, it is left behind.
        TimeoutError: It cancelled itself.
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
    task.result()


async def cancel(task: asyncio.Future[None]) -> None:
    """Cancel and wait, but not long."""
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def guarded(work: Callable[[], Awaitable[None]]) -> None:
    """Await the plugin; what would end the whole thread becomes an ordinary error."""
    try:
        await work()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(described(error)) from error


async def waited(event: asyncio.Event, timeout_ms: int | None) -> None:
    """Until the event or the time, whichever is first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()


def described(error: BaseException) -> str:
    """Kind and message in one line."""
    return f"{type(error).__name__}: {error}"
