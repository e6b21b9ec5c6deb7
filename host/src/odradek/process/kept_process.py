"""A process that is started again whenever it ends, as long as its owner runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
STEADY_MS = 60_000
"""A process that ran this long before it ended restarts with the first backoff."""


class KeptProcess(ABC):
    """Keeps one process running until `stop`.

    Args:
        about: What tells it from others of its kind, for the log.
        clock: The time.
        backoff_s: Time before the first restart. It doubles with each further one.
    """

    kind: ClassVar[str]
    """For the log."""

    def __init__(self, about: Mapping[str, object], clock: Clock, backoff_s: float = BACKOFF_S) -> None:
        self.about = about
        self.title = " ".join((self.kind, *map(str, about.values())))
        self.clock = clock
        self.first_backoff_s = self.backoff_s = backoff_s
        self.process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.starts = 0

    @abstractmethod
    async def launch(self) -> asyncio.subprocess.Process:
        """Start the process once, in a session of its own.

        Raises:
            OSError: It cannot be started.
        """

    def ended(self) -> bool:
        """Take note of the end of the process; return whether to start it again."""
        return True

    def keep_running(self) -> None:
        """Start the process, and restart it whenever it ends."""
        self.task = asyncio.create_task(self.keep(), name=f"{self.kind} {self.about}")

    async def keep(self) -> None:
        while True:
            started_ms = self.clock.monotonic_ms()
            why = await self.run()
            if not self.ended():
                log.info("%s ended: %s", self.title, why, extra={**self.about, "why": why})
                return
            if self.clock.monotonic_ms() - started_ms >= STEADY_MS:
                self.backoff_s = self.first_backoff_s
            log.warning(
                "%s ended, restarting it in %g s: %s",
                self.title,
                self.backoff_s,
                why,
                extra={**self.about, "why": why, "after_s": self.backoff_s},
            )
            await asyncio.sleep(self.backoff_s)
            self.backoff_s = min(2 * self.backoff_s, BACKOFF_MAX_S)

    async def run(self) -> str:
        """Start the process and wait for its end; return why it ended.

        The process has a session of its own: an interrupt from the terminal reaches only its owner, and the
        owner can kill the process together with its children.
        """
        self.starts += 1
        starting = asyncio.ensure_future(self.launch())
        try:
            self.process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # the process may already run and have children: `stop` must know it
            with contextlib.suppress(OSError):
                self.process = await starting
            raise
        except OSError as error:
            return f"{error.filename or self.kind}: {error.strerror}"
        log.info("%s started", self.kind, extra={**self.about, "pid": self.process.pid})
        try:
            return f"exit status {await self.process.wait()}"
        finally:
            if self.process.returncode is not None:
                send_group(self.process.pid, signal.SIGKILL)  # its remaining children

    async def stop(self, timeout_s: float) -> None:
        """Ask the process to end; kill it after the time."""
        if self.task is None:
            return
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        if self.process is None or self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), timeout_s)
        except TimeoutError:
            log.warning("%s did not end in %g s, killing it", self.title, timeout_s, extra=dict(self.about))
        send_group(self.process.pid, signal.SIGKILL)
        await self.process.wait()


def send_group(pid: int, number: signal.Signals) -> None:
    """Signal a process and all its children; ignore processes that are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
