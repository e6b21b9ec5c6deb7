"""One window of the produce and fetch benches: a librdkafka client under load, and the server's CPU time."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from bench.generator import answer
from bench.harness import PATIENCE_S, Server, close, cpu_ns, pipes, spawn, touch_pages

TOUCHED = 3
"""A multiple of the bytes of a window: other processes take some of it first."""


class Report(TypedDict):
    """The client's counts; see ``record_client.py``."""

    records: int
    bytes: int
    requests: int
    seconds: float
    problems: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWindow:
    """The cost to one server of one client's records."""

    cpu_us: float
    """CPU time of the server for one record, microseconds."""
    cpu_us_per_mb: float
    """CPU time for a million bytes of values."""
    records_per_request: float
    core: float
    """The part of one core that the server used; far below 1, the client was the bottleneck."""


def measure(server: Server, mode: str, settings: dict[str, Any], core: int | None) -> RecordWindow:
    """Let a new client run its load once, and measure the cost to the server.

    Raises:
        UnavailableError: The client gave up; standard error has the reason.
        SystemExit: A record was lost or refused, so the measurement is invalid.
    """
    client = spawn([sys.executable, "-m", "bench.record_client", mode, json.dumps(settings)], core)
    stdin, stdout = pipes(client)

    def say(word: str) -> str:
        stdin.write(word + "\n")
        stdin.flush()
        return answer(stdout)

    try:
        say(str(server.port))
        if mode == "produce":
            touch_pages(settings["records"] * settings["size"] * TOUCHED)
        before = cpu_ns(server.pid)
        say("go")
        spent_ns = cpu_ns(server.pid) - before
        report: Report = json.loads(say("report"))
    finally:
        close(stdin)
        try:
            client.wait(PATIENCE_S)
        finally:
            client.kill()
            close(stdout)
    if report["problems"] or not report["records"]:
        sys.exit(f"not every record came through: {report['problems'][:3]}")
    if spent_ns <= 0:
        sys.exit(f"{spent_ns} ns of CPU: the window measured nothing")
    return RecordWindow(
        cpu_us=spent_ns / 1000 / report["records"],
        cpu_us_per_mb=spent_ns * 1000 / report["bytes"],
        records_per_request=report["records"] / max(1, report["requests"]),
        core=spent_ns / 1e9 / report["seconds"],
    )


def median(windows: Sequence[RecordWindow], of: Callable[[RecordWindow], float]) -> float:
    return statistics.median(of(window) for window in windows)
