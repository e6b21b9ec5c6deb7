"""``odradek serve`` in its own process, as a user starts it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.child_process import same_imports
from support.hosts import READY_TIMEOUT_S

READY = "odradek ready listeners=PLAINTEXT://"
STOP_TIMEOUT_S = 60

Push = dict[str, Any]
"""One line of the plugin ``stdout``: context, metrics, names, labels."""


@dataclass(slots=True)
class HostProcess:
    """A running host and the lines it prints."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str]
    bootstrap: str = ""
    pushes: list[Push] = field(default_factory=list)
    """All lines read so far."""

    def read_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        line = self.next_line(deadline)
        assert line is not None, "no ready line"
        assert line.startswith(READY), line
        self.bootstrap = line.removeprefix(READY).split()[0]

    def next_line(self, deadline: float) -> str | None:
        """None at the deadline (``time.monotonic``)."""
        try:
            return self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def wait_for_push(self, wanted: Callable[[Push], bool], timeout_s: float = 60) -> Push:
        """The first push for which ``wanted`` is true, already read or still to come.

        Raises:
            AssertionError: None came in time.
        """
        deadline = time.monotonic() + timeout_s
        for push in self.pushes:
            if wanted(push):
                return push
        while (line := self.next_line(deadline)) is not None:
            self.pushes.append(json.loads(line))
            if wanted(self.pushes[-1]):
                return self.pushes[-1]
        raise AssertionError(f"no such push in {timeout_s} s among {len(self.pushes)}")


def pump(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)


def serve_command(data_dir: Path, *more: str) -> list[str]:
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"data.dir={data_dir}", *more]
    settings.append("group.initial.rebalance.delay.ms=0")  # otherwise three seconds for each group
    options = [option for setting in settings for option in ("--set", setting)]
    return [sys.executable, "-m", "odradek", "serve", *options, "--plugin", "stdout"]


@contextmanager
def host_process(folder: Path, *settings: str) -> Iterator[HostProcess]:
    """Start with more ``key=value`` settings, wait for the ready line, yield, stop with SIGTERM. The log is
    ``folder/host.log``.
    """
    environment = same_imports()
    with (folder / "host.log").open("w") as log:
        process = subprocess.Popen(
            serve_command(folder / "data", *settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=pump, args=(process, lines))
        reader.start()
        try:
            host = HostProcess(process, lines)
            host.read_until_ready()
            yield host
        finally:
            stop(process)
            reader.join(STOP_TIMEOUT_S)
            assert process.stdout is not None
            process.stdout.close()


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
