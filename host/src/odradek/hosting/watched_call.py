"""A call of a plugin that takes long is told with the line where it is."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from odradek.plugin.places import Frames, innermost

log = logging.getLogger(__name__)

LONG_S: Final = 2.0


@contextmanager
def told_if_long(plugin: str, what: str, then: str) -> Iterator[None]:
    """Log where a call is that takes long. The body awaits it.

    Args:
        plugin: The name of the plugin.
        what: What is called.
        then: What the call holds up.
    """
    ident, loop = threading.get_ident(), asyncio.get_running_loop()

    def tell() -> None:
        where = place_of_thread(ident) or place_of_tasks(loop)
        told = "plugin %s: %s has not returned after %g s%s; %s"
        log.warning(told, plugin, what, LONG_S, where, then, extra={"plugin": plugin})

    timer = threading.Timer(LONG_S, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def place_of_thread(ident: int) -> str:
    """The line of a plugin that a thread runs; see `place_of`."""
    frame = sys._current_frames().get(ident)  # noqa: SLF001  its documented name
    return innermost(reversed(list(outwards(frame))))


def outwards(frame: FrameType | None) -> Frames:
    """The frames of a thread, the innermost first."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def place_of_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """The line of a plugin at which a task of a loop waits. Any thread may ask."""
    places = (innermost(suspended(task.get_coro())) for task in asyncio.all_tasks(loop))
    return next(filter(None, places), "")


def suspended(coroutine: Any) -> Frames:
    """The frames in which a coroutine waits, the outermost first."""
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield frame, frame.f_lineno
        coroutine = coroutine.cr_await
