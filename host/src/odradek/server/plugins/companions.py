"""Processes beside the host, of plugins that are too heavy for it: started, watched, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Sequence

from odradek.clock import Clock
from odradek.plugin.protocols import Companion
from odradek.server.plugins.active_plugin import ActivePlugin
from odradek.server.plugins.offers import COMPANION

log = logging.getLogger(__name__)

STDERR = 2
"""Standard output is for the line that says that the host is ready."""
BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
STEADY_MS = 60_000
"""Who has run that long before it ended is started again without delay growing."""


class CompanionRunner:
    """One process, as long as the host runs."""

    def __init__(self, name: str, companion: Companion, clock: Clock, backoff_s: float = BACKOFF_S) -> None:
        self.name = name
        self.companion = companion
        self.clock = clock
        self.first_backoff_s = self.backoff_s = backoff_s
        self.process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.starts = 0

    def start(self, bootstrap_servers: str) -> None:
        """Start it, and again whenever it ends."""
        try:
            command = list(self.companion.command(bootstrap_servers))
        except Exception:
            log.exception("companion cannot be started", extra={"plugin": self.name})
            return
        self.task = asyncio.create_task(self.keep(command), name=f"companion-{self.name}")

    async def keep(self, command: Sequence[str]) -> None:
        while True:
            started_ms = self.clock.now_ms()
            why = await self.run(command)
            if self.clock.now_ms() - started_ms >= STEADY_MS:
                self.backoff_s = self.first_backoff_s
            log.warning(
                "companion ended, it is started again",
                extra={"plugin": self.name, "why": why, "after_s": self.backoff_s},
            )
            await asyncio.sleep(self.backoff_s)
            self.backoff_s = min(2 * self.backoff_s, BACKOFF_MAX_S)

    async def run(self, command: Sequence[str]) -> str:
        """Start it and wait until it ends; why it did.

        It has a session of its own, so that an interrupt from the terminal is the host's alone, and so that
        it can be killed with all that it started.
        """
        self.starts += 1
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=STDERR,
                start_new_session=True,
            )
        )
        try:
            self.process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # it may run already, and have started others: whoever stops it has to know of it
            with contextlib.suppress(OSError):
                self.process = await starting
            raise
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        log.info("companion started", extra={"plugin": self.name, "pid": self.process.pid})
        try:
            return f"exit status {await self.process.wait()}"
        finally:
            if self.process.returncode is not None:
                send_group(self.process.pid, signal.SIGKILL)  # what it left behind

    async def stop(self, timeout_s: float) -> None:
        """Let it end; kill it when it takes longer."""
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
            log.warning("companion did not end in time", extra={"plugin": self.name})
        send_group(self.process.pid, signal.SIGKILL)
        await self.process.wait()


def send_group(pid: int, number: signal.Signals) -> None:
    """Signal a process and all that it started; nobody may be left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Companions:
    """All of them."""

    def __init__(self, plugins: Sequence[ActivePlugin], clock: Clock) -> None:
        self.runners = [
            CompanionRunner(plugin.name, companion, clock)
            for plugin in plugins
            for companion in plugin.offered(COMPANION)
        ]

    def start(self, bootstrap_servers: str) -> None:
        """Start each; the host takes connections by now."""
        for runner in self.runners:
            runner.start(bootstrap_servers)

    async def stop(self, timeout_s: float) -> None:
        """Stop all at once."""
        await asyncio.gather(*(runner.stop(timeout_s) for runner in self.runners))
