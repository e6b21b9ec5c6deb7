"""Settings of a process that the host owns: event loop, memory, signals."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

from odradek.process.hangup import HANGUP, has_terminal, held_hangup
from odradek.process.supervisor import STOPPING, tell_supervisor

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

log = logging.getLogger("odradek")

MOST_DESCRIPTORS = 1 << 20
"""More connections than one process can serve. The limit of a container may be a thousand times higher."""
# glibc's malloc.h. Buffers of 20 kB to 1 MB come and go with each push; without these thresholds the
# allocator gives them back to the kernel every time, which doubles the cost of the payload path
# (tests/bench/push.py).
MALLOC_OPTIONS = {-1: 256 << 20, -3: 64 << 20, -2: 16 << 20}  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_TOP_PAD
SWITCH_INTERVAL_S = 0.0005
AGAIN_S = 0.5
"""A loop that has not taken a signal after this time is held."""


def keep_buffers() -> None:
    """Let the allocator keep freed buffers for the next push. Call before the first large allocation."""
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        for option, value in MALLOC_OPTIONS.items():
            library.mallopt(option, value)


def switch_threads_often() -> None:
    """Let no thread keep the interpreter from the event loop for longer than half a millisecond.

    The loop gives the interpreter up around every callback and may get it back after the interval, by default
    five milliseconds, while a thread computes: a forwarder, or a check of records.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)


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


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for this thread or another one: uvloop's if that is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    found: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return found


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run ``main`` until it returns; SIGTERM and SIGINT set the event passed to it.

    Raises:
        KeyboardInterrupt: A signal came again, and the loop had not taken the first: something held it.
    """
    asked_s: list[float] = []

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        """Called at once, also while the loop is held."""
        asked_s.append(time.monotonic())
        if asked_s[-1] - asked_s[0] > AGAIN_S:
            raise KeyboardInterrupt

    async def with_signals() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def stop_soon(number: signal.Signals) -> None:
            asked_s.clear()
            tell_supervisor(STOPPING)
            log.info("stopping", extra={"why": number.name})
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop_soon, number)
            signal.signal(number, interrupt)  # in addition: the loop has the signals from a descriptor
            signal.siginterrupt(number, False)
        await main(stop)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(with_signals())


def on_hangup(reload: Callable[[], object], stop: asyncio.Event) -> None:
    """Reload on SIGHUP, but set the event, which stops the host, if the terminal of its start is gone.

    The same for a signal that came during the start. Call it on the loop. Does nothing if the signal is
    ignored, as by ``nohup``, or on Windows.
    """
    if HANGUP is None or signal.getsignal(HANGUP) is signal.SIG_IGN:
        return
    held = held_hangup()
    had_terminal = has_terminal() if held is None else held.had_terminal

    def hung_up() -> None:
        if had_terminal and not has_terminal():
            log.info("stopping", extra={"why": "SIGHUP"})
            stop.set()
        elif not stop.is_set():
            reload()

    asyncio.get_running_loop().add_signal_handler(HANGUP, hung_up)
    if held is not None and held.came:
        hung_up()
