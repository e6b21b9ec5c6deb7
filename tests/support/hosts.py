"""Hosts for tests: one in a thread of this process, and one as ``odradek serve``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from odradek.server.config import load_config
from odradek.server.host import Host
from odradek.server.plugins import HostPluginManager

LOOPBACK = "PLAINTEXT://127.0.0.1:0"
EVERYTHING = ("subscriptions.all.metrics=*", "subscriptions.all.interval.ms=200")
"""A subscription for every client, short enough for a test."""


class ThreadedHost:
    """A host on a loop of its own in a thread."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self.host = host
        self.loop = loop

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.host.listeners[0].bound_port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.address[1]}"

    def call(self, function: Callable[[], Any]) -> Any:
        """Run something on the host's loop."""

        async def on_loop() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(on_loop(), self.loop).result(10)


@contextlib.contextmanager
def running_host(
    data_dir: Path,
    *overrides: str,
    before_start: Callable[[Host], object] | None = None,
    plugins: HostPluginManager | None = None,
) -> Iterator[ThreadedHost]:
    """A host that is stopped at the end, whatever happens."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="host-of-a-test", daemon=True)
    thread.start()

    async def start() -> Host:
        config = load_config(None, [f"listeners={LOOPBACK}", f"data.dir={data_dir}", *overrides])
        host = Host(config, plugins=plugins)
        if before_start is not None:
            before_start(host)
        await host.start()
        return host

    try:
        host = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
        try:
            yield ThreadedHost(host, loop)
        finally:
            asyncio.run_coroutine_threadsafe(host.stop(), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class ServeProcess:
    """``odradek serve`` as a person starts it."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "odradek", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.readers = [
            threading.Thread(target=self.read, args=(self.process.stdout, self.lines.put), daemon=True),
            threading.Thread(target=self.read, args=(self.process.stderr, self.errors.append), daemon=True),
        ]
        for reader in self.readers:
            reader.start()
        self.ready = self.wait_ready()

    @staticmethod
    def read(stream: Any, put: Callable[[str], None]) -> None:
        with contextlib.suppress(ValueError):
            for line in stream:
                put(line.rstrip("\n"))

    def wait_ready(self) -> str:
        """The ready line.

        Raises:
            RuntimeError: The process ended without one, or took too long.
        """
        try:
            line = self.lines.get(timeout=20)
        except queue.Empty:
            self.kill()
            raise RuntimeError("serve is not ready: " + "\n".join(self.errors)) from None
        assert line.startswith("odradek ready listeners="), line
        return line

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the first listener."""
        return self.ready.split("listeners=")[1].split(" ")[0].split(",")[0].split("://")[1]

    def next_push(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = 20) -> dict[str, Any]:
        """The next line of the stdout plugin that is wanted."""
        while True:
            row: dict[str, Any] = json.loads(self.lines.get(timeout=timeout_s))
            if wanted(row):
                return row

    def terminate(self, timeout_s: float = 15) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout_s)
        self.join()
        return status

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait(10)
        self.join()

    def join(self) -> None:
        for reader in self.readers:
            reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def serving(data_dir: Path, *arguments: str) -> Iterator[ServeProcess]:
    """``odradek serve`` on a free port, ended at the end."""
    serve = ServeProcess("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={data_dir}", *arguments)
    try:
        yield serve
    finally:
        if serve.process.poll() is None:
            serve.terminate()
