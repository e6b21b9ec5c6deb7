"""Companions: processes that run beside the host for plugins too heavy to run inside it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from os import PathLike

from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.offers import COMPANION
from odradek.plugin.plugin_stats import PluginStats, described
from odradek.plugin.protocols import Companion
from odradek.process.kept_process import BACKOFF_S, KeptProcess
from odradek.waiting.clock import Clock

STDERR = 2
"""Companions write to stderr: the host's stdout carries the ready line."""
PLAINTEXT = "PLAINTEXT"


class CompanionRunner(KeptProcess):
    """Keeps one process running as long as the host runs."""

    kind = "companion"

    def __init__(self, name: str, companion: Companion, clock: Clock, backoff_s: float = BACKOFF_S) -> None:
        super().__init__({"plugin": name}, clock, backoff_s)
        self.name = name
        self.companion = companion
        self.stats = PluginStats(name)
        self.listeners: Sequence[tuple[str, str]] = ()

    def start(self, listeners: Sequence[tuple[str, str]]) -> None:
        """Start the process, and restart it whenever it ends. See `address_for`."""
        self.listeners = listeners
        self.keep_running()

    async def launch(self) -> asyncio.subprocess.Process:
        try:
            command = self.companion.command(address_for(self.companion, self.listeners))
            if isinstance(command, str) or not all(isinstance(each, str | PathLike) for each in command):
                expected = "a list of texts: the program and its arguments"
                raise TypeError(f"command returned {command!r:.100}, expected {expected}")
        except Exception as error:
            self.stats.fail(error, self.clock.monotonic_ms(), self.companion.command)
            raise OSError(errno.EINVAL, f"its command() raised {described(error)}") from error
        return await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=STDERR, start_new_session=True
        )


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
