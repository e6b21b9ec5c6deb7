"""Hides harmless warnings that a JVM prints when it starts."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NOISE: Final = re.compile(rb"WARNING: (Using incubator modules|package \S+ not in )")
STDERR = 2


@contextmanager
def without_noise() -> Iterator[None]:
    """Filter `NOISE` from the stderr of processes that are started inside ``with``."""
    sys.stderr.flush()
    reading, writing = os.pipe()
    terminal = os.dup(STDERR)
    os.dup2(writing, STDERR)
    os.close(writing)
    threading.Thread(target=passed_on, args=(reading, terminal), name="stderr of Java", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, STDERR)


def passed_on(reading: int, writing: int) -> None:
    """Copy lines, except `NOISE`, until the writing end is closed."""
    with os.fdopen(reading, "rb", buffering=0) as lines, os.fdopen(writing, "wb", buffering=0) as out:
        rest = b""
        while chunk := lines.read(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if not NOISE.match(line):
                    out.write(line + b"\n")
        out.write(rest)
