"""Threads of a plugin that end with an exception. A host does not notice them: the plugin stops working."""

from __future__ import annotations

import threading
import time
import traceback
from typing import Self

from odradek.plugin.places import place_of

SETTLE_S = 0.05
"""How long to wait for a thread that has just been given something to do."""


class ThreadDeaths:
    """Records exceptions that end threads started inside the ``with`` block; others get the previous hook."""

    def __init__(self) -> None:
        self.found: list[tuple[str, BaseException]] = []
        self.before: set[threading.Thread] = set()

    def __enter__(self) -> Self:
        self.before = set(threading.enumerate())
        self.previous = threading.excepthook
        threading.excepthook = self.record
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self.previous

    def record(self, died: threading.ExceptHookArgs) -> None:
        """The hook. Python ignores SystemExit in a thread, and so does this."""
        if died.thread is None or died.thread in self.before or died.exc_value is None:
            self.previous(died)
        elif not isinstance(died.exc_value, SystemExit):
            self.found.append((died.thread.name, died.exc_value))

    def settle(self) -> None:
        """Give the new threads time to die of what they were given."""
        end_s = time.monotonic() + SETTLE_S
        for thread in set(threading.enumerate()) - self.before - {threading.current_thread()}:
            if thread.is_alive():  # one that is listed may not have begun, and cannot be joined
                thread.join(max(0, end_s - time.monotonic()))

    def described(self) -> str:
        """The threads, each with its exception and the line that raised it; empty if none has died.

        Threads that died alike are named once.
        """
        texts: dict[object, str] = {}
        for name, error in self.found:
            where = place_of(error)
            texts.setdefault((name, type(error), where), f"the thread {name} died: {text_of(error)}{where}")
        return ", ".join(texts.values())


def text_of(error: BaseException) -> str:
    """The exception, as Python prints it in the last line of a traceback."""
    return traceback.format_exception_only(error)[-1].strip()
