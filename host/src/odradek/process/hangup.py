"""SIGHUP while a host starts.

Imports little: the command line calls it before it imports the host, which takes most of the time of a start.
"""

from __future__ import annotations

import os
import signal

HANGUP = getattr(signal, "SIGHUP", None)
"""None on Windows."""


class HeldHangup:
    """The handler of SIGHUP until the host can follow it; without one the signal would end the process."""

    def __init__(self) -> None:
        self.had_terminal = has_terminal()
        self.came = False

    def __call__(self, *_: object) -> None:
        self.came = True


def has_terminal() -> bool:
    """Whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def hold_hangup() -> None:
    """Remember a SIGHUP, unless it is ignored, as by ``nohup``."""
    if HANGUP is not None and signal.getsignal(HANGUP) is signal.SIG_DFL:
        signal.signal(HANGUP, HeldHangup())


def held_hangup() -> HeldHangup | None:
    """The handler of `hold_hangup`; None if that was not called, or the signal has another one now."""
    handler = signal.getsignal(HANGUP) if HANGUP is not None else None
    return handler if isinstance(handler, HeldHangup) else None
