"""Keys that a person presses, without Enter."""

from __future__ import annotations

import os
import select
import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO


class Keys:
    """Single keys of a terminal; a context manager. Without a terminal it only waits.

    Args:
        stream: Standard input.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.saved: list[Any] | None = None

    def __enter__(self) -> Self:
        if sys.platform != "win32" and self.stream.isatty():
            import termios
            import tty

            self.saved = termios.tcgetattr(self.stream.fileno())
            tty.setcbreak(self.stream.fileno())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if sys.platform != "win32" and self.saved is not None:
            import termios

            termios.tcsetattr(self.stream.fileno(), termios.TCSADRAIN, self.saved)

    def wait(self, timeout_s: float) -> str:
        """The next key; empty if none was pressed in time."""
        if self.saved is None:
            time.sleep(timeout_s)
            return ""
        ready, _, _ = select.select([self.stream], [], [], timeout_s)
        return os.read(self.stream.fileno(), 1).decode(errors="replace") if ready else ""
