"""Tells of code of plugins that keeps the loop from running, and of their threads that die."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final, Self

from odradek.hosting.watched_call import LONG_S, outwards
from odradek.plugin.places import Frames, innermost_frame, place
from odradek.plugin.plugin_stats import described

log = logging.getLogger(__name__)

CHECKS: Final = 4
"""How often a thread looks within `LONG_S`."""


class PluginWatch:
    """Watches one program, on the thread of its loop, while it is entered.

    Args:
        owner: Tells the plugin that is in a package; empty if there is none.
        long_s: A loop that does not turn for so long is told of, if a plugin holds it.
    """

    def __init__(self, owner: Callable[[str], str], long_s: float = LONG_S) -> None:
        self.owner = owner
        self.long_s = long_s
        self.loop_thread = 0
        self.turned_s = 0.0
        """When the loop turned last."""
        self.handle: asyncio.TimerHandle | None = None
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None
        """Looks at the loop; None while nothing is watched."""
        self.previous = threading.excepthook
        self.hook = self.died

    def __enter__(self) -> Self:
        self.loop_thread, self.turned_s = threading.get_ident(), time.monotonic()
        self.ended = threading.Event()
        self.previous, threading.excepthook = threading.excepthook, self.hook
        self.thread = threading.Thread(target=self.look, name="odradek-plugin-watch", daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.thread is None:
            return
        self.ended.set()
        self.thread.join()
        self.thread = None
        if threading.excepthook is self.hook:  # else another one follows, which calls this
            threading.excepthook = self.previous

    def start(self) -> None:
        """Watch while the program runs."""
        self.__enter__()
        self.turn()

    def turn(self) -> None:
        """Note from now on that the loop turns."""
        self.turned_s = time.monotonic()
        self.handle = asyncio.get_running_loop().call_later(self.long_s / CHECKS, self.turn)

    def stop(self) -> None:
        """End the watch, which may never have started."""
        if self.handle is not None:
            self.handle.cancel()
        self.__exit__()

    def look(self) -> None:
        """The body of the thread: tell once of each time that the loop is held."""
        told_s = 0.0
        while not self.ended.wait(self.long_s / CHECKS):
            turned_s = self.turned_s
            if turned_s != told_s and time.monotonic() - turned_s > self.long_s and self.tell():
                told_s = turned_s

    def tell(self) -> bool:
        """Tell which plugin holds the loop; return whether one does."""
        frames = outwards(sys._current_frames().get(self.loop_thread))  # noqa: SLF001  its documented name
        name, where = self.found(reversed(list(frames)))
        if name:
            told = (
                "plugin %s holds the event loop for more than %g s (%s); "
                "a second Ctrl-C or SIGTERM interrupts it"
            )
            log.error(told, name, self.long_s, where, extra={"plugin": name})
        return bool(name)

    def died(self, death: threading.ExceptHookArgs) -> None:
        """The hook of `threading`."""
        error = death.exc_value
        if error is not None and not isinstance(error, SystemExit) and self.thread is not None:
            name, where = self.found(traceback.walk_tb(error.__traceback__))
            if name:
                thread = death.thread.name if death.thread else "unknown"
                told = "plugin %s: its thread %s died: %s (%s); what it did is not done until the next start"
                log.error(told, name, thread, described(error), where, exc_info=error, extra={"plugin": name})
                return
        self.previous(death)

    def found(self, frames: Frames) -> tuple[str, str]:
        """The plugin that runs in these frames, and its innermost line; empty if there is none."""
        found = innermost_frame(frames)
        if found is None:
            return "", ""
        frame, line = found
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        return self.owner(package), place(frame.f_code, line)
