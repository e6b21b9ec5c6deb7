"""The context manager that starts a host from keyword arguments and stops it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from odradek.hosting.requested_plugins import by_name, tables_of
from odradek.programs.config import HostConfig, parse
from odradek.settings.toml_file import flatten
from odradek.testing.host_brokers import several
from odradek.testing.host_security import HostSecurity
from odradek.testing.running_host import RunningHost
from odradek.testing.virtual_clock import VirtualClock

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  only folders with random names are created in it
FOR_TESTS: Mapping[str, object] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "payload.workers": 0,  # starting a worker process would dominate the start of the host
    "group.initial.rebalance.delay.ms": 0,  # a single consumer need not wait for others
    # members of the consumer protocol learn of each other by their heartbeats
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
    "shutdown.timeout.ms": 1_000,
    "telemetry.durability": "memory",  # no topics that the test did not create
    "telemetry.linger.ms": 0,  # a virtual clock may stand still, and lingering pushes would wait forever
}
"""Keys whose defaults differ from those of the host."""


def memory_folder() -> str | None:
    """A folder in memory, so that SQLite does not wait for a disk; None if the machine has none."""
    return str(SHARED_MEMORY) if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None


def temporary_folder(opened: ExitStack, parent: str | None) -> Path:
    """Create a folder that is deleted when ``opened`` is closed."""
    folder = tempfile.mkdtemp(prefix="odradek-", dir=parent)
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def check_unless_failed(host: RunningHost, kind: type[BaseException] | None, *_: object) -> None:
    """Check the faults of a test, unless an exception already tells what is wrong with it."""
    if kind is None:
        host.check()


class HostContext:
    """Starts a host on entry and stops it on exit, even after an exception.

    The exit raises FaultNotHit if a fault has hit no request, see `RunningHost.check`.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        clock: VirtualClock | None,
        data_dir: Path | None,
        plugins: Mapping[Any, object] | Iterable[object] = (),
        security: HostSecurity | None = None,
        brokers: int = 1,
    ) -> None:
        self.config = config
        self.clock = clock
        self.data_dir = data_dir
        self.plugins = plugins
        self.security = security or HostSecurity()
        self.brokers = brokers
        self.opened: ExitStack | None = None
        """Cleanups to run on exit; None while the host is not running."""

    def __enter__(self) -> RunningHost:
        if self.opened is not None:
            raise RuntimeError("this host is already running: create another one with odradek.testing.host()")
        with ExitStack() as opened:
            host = RunningHost(self.host_config(opened), self.clock, self.security, self.brokers > 1)
            host.start()
            opened.push(partial(check_unless_failed, host))
            opened.callback(host.close)
            for name, password in self.security.users.items():
                host.user(name, password)
            host.allow(*self.security.acls or ())
            self.opened = opened.pop_all()
        return host

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        opened, self.opened = self.opened, None
        if opened is not None:
            opened.__exit__(kind, error, traceback)

    async def __aenter__(self) -> RunningHost:
        entered = threading.Event()

        def enter() -> RunningHost:
            try:
                return self.__enter__()
            finally:
                entered.set()

        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, enter))
        except asyncio.CancelledError:  # the executor thread still starts the host, which must be stopped
            entered.wait()
            self.__exit__()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, traceback)

    def host_config(self, opened: ExitStack) -> HostConfig:
        """The configuration, with directories for the data."""
        given = {key.replace("_", "."): value for key, value in self.config.items()}
        folder = temporary_folder(opened, memory_folder())
        secure = self.security.settings(folder)
        named = by_name(self.plugins)
        tables = {name: {} for name in named} | tables_of(self.plugins)
        values = {**FOR_TESTS, **secure, **flatten({**given, "plugins": tables})}
        if self.data_dir is not None:
            values["data.dir"] = str(self.data_dir)
        else:
            values["data.dir"] = str(temporary_folder(opened, memory_folder()))
            # logs may grow too large for a folder in memory
            values.setdefault("log.dirs", str(temporary_folder(opened, None)))
        given_as_they_are = [source for source in named.values() if source is not None]
        return parse(self.with_brokers(values), given_as_they_are)

    def with_brokers(self, values: Mapping[str, object]) -> dict[str, object]:
        """The same values, with a listener for each broker."""
        return {**values, "listeners": several(values["listeners"], self.brokers)}
