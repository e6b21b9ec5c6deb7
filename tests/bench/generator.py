"""The load generator of ``native/load.c``, and one window of measuring a server under it or another one."""

from __future__ import annotations

import json
import statistics
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, TypedDict

from bench.harness import PATIENCE_S, Server, UnavailableError, build, close, cpu_ns, pipes, spawn


class Window(TypedDict):
    """The generator's counts since the previous mark; see ``native/load.c``."""

    requests: int
    throttled: int
    errors: dict[str, int]
    seconds: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One window of load on one server."""

    cpu_us: float
    """CPU time of the server for one request, microseconds."""
    requests_per_s: float
    """Per second of wall time: meaningful only on an idle machine."""
    core: float
    """The part of one core that the server used; far below 1, the server was not the bottleneck."""
    p50_us: float
    p99_us: float
    requests: int
    errors: dict[str, int]
    """Refused pushes by error code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The generator's load: CONNECTIONS x DEPTH pushes in flight."""

    connections: int
    payloads: Path
    """A file of `write_payloads`."""
    instances: int = 1
    """Client instances of each connection, which push in turn."""
    depth: int = 1
    stride: int = 1
    """How far apart the payloads of an instance are in the file."""

    def command(self, port: int) -> list[str | Path]:
        """How to start the generator."""
        numbers = (port, self.connections, self.instances, self.depth, self.stride)
        return [build("load"), *(str(number) for number in numbers), self.payloads]


def write_payloads(file: IO[bytes], payloads: Iterable[tuple[int, bytes]]) -> None:
    """Write payloads, each with its codec, as ``native/load.c`` reads them."""
    for codec, payload in payloads:
        file.write(struct.pack(">BI", codec, len(payload)) + payload)
    file.flush()


class Generator(Protocol):
    """A program that puts a server under load and prints a `Window` for each line on its standard input."""

    def command(self, port: int) -> list[str | Path]: ...


def measure(server: Server, load: Generator, *, seconds: float, core: int | None = None) -> Measurement:
    """Put a server under load, let it warm up for a third of the time, and measure one window.

    Raises:
        UnavailableError: The generator gave up.
        SystemExit: No request was answered in the window, or the server did no work for them.
    """
    generator = spawn(load.command(server.port), core)
    stdin, stdout = pipes(generator)
    try:
        answer(stdout)
        time.sleep(seconds / 3)
        mark(stdin, stdout)
        before = cpu_ns(server.pid)
        time.sleep(seconds)
        window = mark(stdin, stdout)
        spent_ns = cpu_ns(server.pid) - before
    finally:
        close(stdin)
        generator.wait(PATIENCE_S)
        close(stdout)
    if not window["requests"] or spent_ns <= 0:
        sys.exit(f"{window['requests']} requests in {spent_ns} ns of CPU: the window measured nothing")
    return Measurement(
        cpu_us=spent_ns / 1000 / window["requests"],
        requests_per_s=window["requests"] / window["seconds"],
        core=spent_ns / 1e9 / window["seconds"],
        p50_us=window["p50_us"],
        p99_us=window["p99_us"],
        requests=window["requests"],
        errors=window["errors"],
    )


def mark(stdin: IO[str], stdout: IO[str]) -> Window:
    """Ask for the counters since the last mark."""
    stdin.write("mark\n")
    stdin.flush()
    window: Window = json.loads(answer(stdout))
    return window


def answer(stream: IO[str]) -> str:
    line = stream.readline()
    if not line:
        raise UnavailableError("the load generator gave up")
    return line


def refused(windows: Sequence[Measurement]) -> dict[str, int]:
    """Error codes of all windows together; empty when every push was accepted."""
    total: dict[str, int] = {}
    for window in windows:
        for code, count in window.errors.items():
            total[code] = total.get(code, 0) + count
    return total


def median_cpu_us(windows: Sequence[Measurement]) -> float:
    return statistics.median(window.cpu_us for window in windows)
