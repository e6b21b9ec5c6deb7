"""The console of ``odradek demo --console``, in a child process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click

from odradek.cli.main import installed_command
from odradek.demo.child import child, last_words
from odradek.demo.security import CONSOLE, DemoSecurity

START_S: Final = 30.0
READY: Final = "odradek console ready "


def check_console() -> None:
    """Check first that the console can be started.

    Raises:
        CommandFailed: The console is not installed.
    """
    installed_command("console")


class DemoConsole:
    """Runs ``odradek console``.

    Args:
        folder: A temporary folder for its log.
        security: How it logs in, or None.
    """

    def __init__(self, folder: Path, security: DemoSecurity | None) -> None:
        self.log = folder / "console.log"
        self.security = security

    def command(self, bootstrap: str) -> tuple[str, ...]:
        """The command line. Everybody on this machine may act, except in a demo with passwords."""
        access = ("--role", "operator")
        if self.security is not None:
            access = ("--command-config", str(self.security.command_config(CONSOLE)))
        options = ("--listen", "127.0.0.1:0", "--bootstrap-server", bootstrap, *access)
        return (sys.executable, "-m", "odradek", "console", "--until-stdin-ends", *options)

    @asynccontextmanager
    async def running(self, bootstrap: str) -> AsyncIterator[str]:
        """Start it, and yield the address of its first page. It also ends if this process is killed.

        Raises:
            click.ClickException: It does not start; has its last words.
        """
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        # a session of its own: at Ctrl-C the demo still shows its last counts, and then ends the console
        async with child(self.command(bootstrap), self.log, **pipes, start_new_session=True) as process:
            assert process.stdout is not None
            try:
                line = await asyncio.wait_for(process.stdout.readline(), START_S)
            except TimeoutError:
                line = b""
            if not line.startswith(READY.encode()):
                raise click.ClickException(f"odradek console does not start: {last_words(self.log)}")
            yield line.decode().removeprefix(READY).strip()
