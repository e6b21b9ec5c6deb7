"""Companions: processes that run beside the host for plugins too heavy to run inside it."""

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
"""Companions write to stderr: the host's stdout carries the ready line."""
PLAINTEXT = "PLAINTEXT"
BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
STEADY_MS = 60_000
"""A companion that ran this long before it ended restarts with the first backoff."""


class CompanionRunner:
    """Keeps one process running as long as the host runs."""

    def __init__(self, name: str, companion: Companion, clock: Clock, backoff_s: float = BACKOFF_S) -> None:
        self.name = name
        self.companion = companion
        self.clock = clock
        self.first_backoff_s = self.backoff_s = backoff_s
        self.process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.starts = 0

    def start(self, listeners: Sequence[tuple[str, str]]) -> None:
        """Start the process, and restart it whenever it ends. See `address_for`."""
        try:
            command = list(self.companion.command(address_for(self.companion, listeners)))
        except Exception:
            log.exception("companion cannot be started; its command() failed", extra={"plugin": self.name})
            return
        self.task = asyncio.create_task(self.keep(command), name=f"companion-{self.name}")

    async def keep(self, command: Sequence[str]) -> None:
        while True:
            started_ms = self.clock.monotonic_ms()
            why = await self.run(command)
            if self.clock.monotonic_ms() - started_ms >= STEADY_MS:
                self.backoff_s = self.first_backoff_s
            log.warning(
                "companion ended, restarting it",
                extra={"plugin": self.name, "why": why, "after_s": self.backoff_s},
            )
            await asyncio.sleep(self.backoff_s)
            self.backoff_s = min(2 * self.backoff_s, BACKOFF_MAX_S)

    async def run(self, command: Sequence[str]) -> str:
        """Start the process and wait for its end; return why it ended.

        The process has a session of its own: an interrupt from the terminal reaches only the host, and the
        host can kill the process together with its children.
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
            # the process may already run and have children: `stop` must know it
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
            log.warning("companion did not end in time, killing it", extra={"plugin": self.name})
        send_group(self.process.pid, signal.SIGKILL)
        await self.process.wait()


def send_group(pid: int, number: signal.Signals) -> None:
    """Signal a process and all its children; ignore processes that are gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def address_for(companion: Companion, listeners: Sequence[tuple[str, str]]) -> str:
    """The address of the listener that a companion can connect to, as far as the host knows.

    Args:
        companion: Its ``security_protocol``, if it has one, is that of its own settings.
        listeners: The security protocol and the address of each listener of the host.
    """
    wanted = getattr(companion, "security_protocol", PLAINTEXT)
    return next((address for protocol, address in listeners if protocol == wanted), listeners[0][1])


class Companions:
    """The companions of all plugins."""

    def __init__(self, plugins: Sequence[ActivePlugin], clock: Clock) -> None:
        self.runners = [
            CompanionRunner(plugin.name, companion, clock)
            for plugin in plugins
            for companion in plugin.offered(COMPANION)
        ]

    def start(self, listeners: Sequence[tuple[str, str]]) -> None:
        """Start all; the host must already accept connections.

        Args:
            listeners: The security protocol and the address of each listener of the host.
        """
        for runner in self.runners:
            runner.start(listeners)

    async def stop(self, timeout_s: float) -> None:
        """Stop all at the same time."""
        await asyncio.gather(*(runner.stop(timeout_s) for runner in self.runners))
