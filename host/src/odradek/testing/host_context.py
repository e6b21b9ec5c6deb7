"""From keyword arguments to a host that runs, and back to nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path

import odradek
from odradek.server.config import HostConfig, flatten, parse
from odradek.server.plugins.plugin_manager import BUILTIN, GROUP, HostPluginManager, load_plugins
from odradek.testing.host_thread import START_TIMEOUT_S, HostThread
from odradek.testing.running_host import RunningHost
from odradek.testing.virtual_clock import VirtualClock

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  a folder with a random name is made in it
FOR_TESTS: Mapping[str, object] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "payload.workers": 0,  # a process per host would be its slowest part
    "group.initial.rebalance.delay.ms": 0,  # a consumer alone need not wait for others
    "shutdown.timeout.ms": 1_000,
    "telemetry.durability": "memory",  # no topic that the test did not make
    "telemetry.linger.ms": 0,  # where it wants that topic: a clock may stand still
}
"""What differs from the host's own defaults."""


def memory_folder() -> str | None:
    """Where files are in memory, so that SQLite waits for no disk; None where there is no such place."""
    return str(SHARED_MEMORY) if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None


def temporary_folder(opened: ExitStack, parent: str | None) -> Path:
    """A folder that goes when ``opened`` is closed."""
    folder = tempfile.mkdtemp(prefix="odradek-", dir=parent)
    opened.callback(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def installed_plugins(names: Collection[str]) -> HostPluginManager:
    """Those plugins and no other: what else is installed must not make a difference to a test."""
    manager = HostPluginManager()
    for name in BUILTIN.keys() & names:
        manager.add(name, BUILTIN[name], GROUP, odradek.__version__, builtin=True)
    if names:
        for entry_point in entry_points(group=GROUP):
            if entry_point.name in names:
                manager.load(entry_point)
    if manager.installed.keys() >= set(names):
        return manager
    return load_plugins()  # one is missing: the host says which there are, and does not start


class HostContext:
    """Starts a host on entry and stops it on exit, whatever happened between."""

    def __init__(
        self,
        config: Mapping[str, object],
        clock: VirtualClock | None,
        data_dir: Path | None,
        plugins: Mapping[str, object] | None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.data_dir = data_dir
        self.plugins = plugins or {}
        self.opened: ExitStack | None = None
        """What has to be undone while it runs."""

    def __enter__(self) -> RunningHost:
        if self.opened is not None:
            raise RuntimeError("this host runs already: make another one with odradek.testing.host()")
        with ExitStack() as opened:
            host = RunningHost(self.clock)
            thread = HostThread(
                self.host_config(opened), self.clock, installed_plugins(self.plugins), host.watch
            )
            host.thread = thread
            thread.start()
            opened.callback(thread.stop)
            self.opened = opened.pop_all()
        return host

    def __exit__(self, *_: object) -> None:
        opened, self.opened = self.opened, None
        if opened is not None:
            opened.close()

    async def __aenter__(self) -> RunningHost:
        entered = threading.Event()

        def enter() -> RunningHost:
            try:
                return self.__enter__()
            finally:
                entered.set()

        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, enter))
        except asyncio.CancelledError:  # the thread goes on all the same, and nobody would stop its host
            entered.wait(START_TIMEOUT_S)
            self.__exit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.__exit__)

    def host_config(self, opened: ExitStack) -> HostConfig:
        """The configuration, with a place for the data."""
        given = {key.replace("_", "."): value for key, value in self.config.items()}
        values = {**FOR_TESTS, **flatten({**given, "plugins": self.plugins})}
        if self.data_dir is not None:
            values["data.dir"] = str(self.data_dir)
        else:
            values["data.dir"] = str(temporary_folder(opened, memory_folder()))
            # logs may become larger than memory should be filled with
            values.setdefault("log.dirs", str(temporary_folder(opened, None)))
        return parse(values, frozenset())
