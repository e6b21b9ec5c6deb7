"""Progress on the terminal: one line on stderr once a command has printed nothing for two seconds.

It appears only if stdout and stderr are both terminals, so that pipes, files and pagers never see it. It is
erased before the command prints, and at the end.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self, TextIO

QUIET_S = 2.0
EVERY_S = 0.2
ERASE = "\r\x1b[K"


class Progress:
    """Shows a text and the seconds, or a count that grows; a context manager.

    While it is open, ``sys.stdout`` and ``sys.stderr`` erase the line first; their buffers do not.

    Args:
        what: The activity, or the things that `done` counts.
        silent: Never show anything.
    """

    def __init__(self, what: str, silent: bool = False) -> None:
        self.what = what
        self.done: int | None = None
        """The number so far; None if nothing is counted."""
        self.shown = not silent and sys.stdout.isatty() and sys.stderr.isatty()
        self.streams = sys.stdout, sys.stderr
        self.started_s = self.printed_s = time.monotonic()
        self.is_painted = False
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.painter = threading.Thread(target=self.paint, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self.shown:
            sys.stdout, sys.stderr = (Erasing(stream, self) for stream in self.streams)
            self.painter.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.ended.set()
            self.painter.join()
            self.erase()
            sys.stdout, sys.stderr = self.streams

    def paint(self) -> None:
        """Repaint the line until the end."""
        while not self.ended.wait(EVERY_S):
            now_s = time.monotonic()
            if now_s - self.printed_s < QUIET_S:
                continue
            with self.lock:
                self.is_painted = True
                self.streams[1].write(ERASE + self.line(now_s - self.started_s))
                self.streams[1].flush()

    def erase(self) -> None:
        """Erase the line, and wait for two more seconds before it appears again."""
        with self.lock:
            self.printed_s = time.monotonic()
            if self.is_painted:
                self.is_painted = False
                self.streams[1].write(ERASE)
                self.streams[1].flush()

    def line(self, seconds: float) -> str:
        """The text after so many seconds."""
        return (
            f"{self.what}, {seconds:.0f} s"
            if self.done is None
            else f"{self.done} {self.what}, {seconds:.0f} s"
        )


class Erasing:
    """A stream that erases the line of progress before it writes."""

    def __init__(self, stream: TextIO, progress: Progress) -> None:
        self.stream, self.progress = stream, progress

    def write(self, text: str) -> int:
        self.progress.erase()
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
