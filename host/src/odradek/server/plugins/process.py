"""Settings of a process that the host owns: event loop, memory, logging, signals."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MOST_DESCRIPTORS = 1 << 20
"""More connections than one process can serve. The limit of a container may be a thousand times higher."""
# glibc's malloc.h. Buffers of 20 kB to 1 MB come and go with each push; without these thresholds the
# allocator gives them back to the kernel every time, which doubles the cost of the payload path
# (tests/bench/push.py).
MALLOC_OPTIONS = {-1: 256 << 20, -3: 64 << 20, -2: 16 << 20}  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_TOP_PAD
COLLECTION_THRESHOLDS = (5_000, 4, 1_000)


def keep_buffers() -> None:
    """Let the allocator keep freed buffers for the next push. Call before the first large allocation."""
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        for option, value in MALLOC_OPTIONS.items():
            library.mallopt(option, value)


def descriptor_limit() -> int | None:
    """The most descriptors that this process may have; None if there is no limit."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as its user may have, as a JVM does."""
    if resource is None:
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, MOST_DESCRIPTORS)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS has another limit below this one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def freeze_garbage() -> None:
    """Exclude everything loaded so far from garbage collection, and collect the rest less often.

    Reference counts free nearly everything. A collection stops the loop for about 150 ns per object, so the
    second generation must stay small: a large request alone makes tens of thousands of objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTION_THRESHOLDS)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's loop if it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    new_loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new_loop


class LineFormatter(logging.Formatter):
    """A fixed message followed by its fields: ``WARNING odradek.log: cannot close a log log=t-0``."""

    STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}

    def format(self, record: logging.LogRecord) -> str:
        line, newline, traceback = super().format(record).partition("\n")
        about = [f" {key}={value}" for key, value in vars(record).items() if key not in self.STANDARD]
        return "".join([line, *about, newline, traceback])


def log_to_stderr(level: str) -> None:
    """Log human-readable lines to stderr; stdout belongs to the ready line and to plugins."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run ``main`` until it returns; SIGTERM and SIGINT set the event passed to it."""

    async def with_signals() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await main(stop)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(with_signals())
