"""Hosts for tests: one in a thread of this process, and one as ``odradek serve``."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from odradek.hosting.plugin_manager import HostPluginManager
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.testing.host_thread import HostThread
from odradek.waiting.clock import Clock

LOOPBACK = "PLAINTEXT://127.0.0.1:0"
READY_TIMEOUT_S = 120
"""Imports are slow on a busy machine."""
EVERYTHING = ("subscriptions.all.metrics=*", "subscriptions.all.interval.ms=200")
"""A subscription for every client, short enough for a test."""


ThreadedHost = HostThread


@contextlib.contextmanager
def running_host(
    data_dir: Path,
    *overrides: str,
    file: Path | None = None,
    before_start: Callable[[Host], object] = lambda _host: None,
    plugins: HostPluginManager | None = None,
    clock: Clock | None = None,
) -> Iterator[ThreadedHost]:
    """A host as `odradek serve` creates it; always stopped at the end."""
    config = load_config(file, [f"listeners={LOOPBACK}", f"data.dir={data_dir}", *overrides])
    thread = HostThread(config, clock, plugins, before_start)
    thread.start()
    try:
        yield thread
    finally:
        thread.close()


def about_itself(lines: Iterable[str]) -> list[str]:
    """The lines of a host's log, without those about a machine that stood still."""
    return [line for line in lines if "the event loop stood still" not in line]


class ServeProcess:
    """``odradek serve`` as a user starts it."""

    program: tuple[str, ...] = ("-m", "odradek")
    command = "serve"
    ready_start = "odradek ready listeners="

    def __init__(
        self, *arguments: str, env: dict[str, str] | None = None, descriptors: int | None = None
    ) -> None:
        def limit() -> None:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` would be inherited
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        self.process = subprocess.Popen(
            [sys.executable, *self.program, self.command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            preexec_fn=limit,
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
            RuntimeError: The process ended without it, or took too long.
        """
        try:
            line = self.lines.get(timeout=READY_TIMEOUT_S)
        except queue.Empty:
            self.kill()
            raise RuntimeError(f"{self.command} is not ready: " + "\n".join(self.errors)) from None
        assert line.startswith(self.ready_start), line
        return line

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the first listener."""
        return self.ready.split("listeners=")[1].split(" ")[0].split(",")[0].split("://")[1]

    def next_push(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = 60) -> dict[str, Any]:
        """The next line of the stdout plugin for which ``wanted`` is true."""
        while True:
            row: dict[str, Any] = json.loads(self.lines.get(timeout=timeout_s))
            if wanted(row):
                return row

    def terminate(self, timeout_s: float = 60) -> int:
        """Send SIGTERM; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout_s)
        self.join()
        return status

    def kill(self) -> None:
        """Send SIGKILL."""
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
def serving(data_dir: Path, *arguments: str, descriptors: int | None = None) -> Iterator[ServeProcess]:
    """``odradek serve`` on a free port, stopped at the end; ``descriptors`` is its limit of open files."""
    settings = ("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={data_dir}")
    serve = ServeProcess(*settings, *arguments, descriptors=descriptors)
    try:
        yield serve
    finally:
        if serve.process.poll() is None:
            serve.terminate()
