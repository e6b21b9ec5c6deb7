"""A stdout that is closed, full, or no longer read."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def open_closed_streams() -> None:
    """Open the null device for stdin, stdout and stderr if the caller has closed them (``odradek ... >&-``).

    Otherwise the next file that the process opens becomes its stdout, and `sys.stdout` is None.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free descriptor is this one
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w", closefd=False))


def unwritable(probe: str = "") -> OSError | None:
    """The reason why stdout cannot take what was printed so far; None if it can.

    Args:
        probe: More to print: a stream without a buffer has nothing left after an error.
    """
    try:
        sys.stdout.write(probe)
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def silence(stream: TextIO) -> None:
    """Point the descriptor at the null device: Python flushes it at exit, which would fail and print an
    error.
    """
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
