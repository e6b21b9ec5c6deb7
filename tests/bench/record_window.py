"""One window of the benches of records: librdkafka clients under load, and the server's CPU time."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, Protocol, TypedDict

from bench import loads
from bench.generator import answer
from bench.harness import PATIENCE_S, close, cpu_ns, forget_peak, peak_bytes, pipes, spawn, touch_pages

TOUCHED = 4
"""A multiple of the bytes of a window, by the median: other processes take some of it first."""


class Server(Protocol):
    """The server that is measured."""

    @property
    def pid(self) -> int: ...
    @property
    def port(self) -> int: ...


class Report(TypedDict):
    """The client's counts; see ``record_client.py``."""

    records: int
    bytes: int
    requests: int
    seconds: float
    problems: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWindow:
    """The cost to one server of its clients' records."""

    cpu_us: float
    """CPU time of the server for one record, microseconds."""
    cpu_us_per_mb: float
    """CPU time for a million bytes of values."""
    records_per_request: float
    core: float
    """The part of one core that the server used; far below 1, the clients were the bottleneck."""
    peak_mb: float
    """The most memory during the window."""


class Client:
    """A program that a bench controls."""

    def __init__(self, mode: str, settings: dict[str, Any], core: int | None) -> None:
        self.process = spawn([sys.executable, "-m", "bench.record_client", mode, json.dumps(settings)], core)
        self.stdin: IO[str]
        self.stdin, self.stdout = pipes(self.process)

    def say(self, word: str) -> None:
        """Begin something; `answer` waits for its end."""
        self.stdin.write(word + "\n")
        self.stdin.flush()

    def answer(self) -> str:
        return answer(self.stdout)

    def end(self) -> None:
        close(self.stdin)
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            close(self.stdout)


def measure(server: Server, mode: str, settings: dict[str, Any], core: int | None) -> RecordWindow:
    """Let a new client run its load once; see `measure_all`."""
    return measure_all(server, mode, [settings], core)


def measure_all(
    server: Server, mode: str, settings: Sequence[dict[str, Any]], core: int | None
) -> RecordWindow:
    """Let new clients run their loads together once, and measure the cost to the server.

    Raises:
        UnavailableError: A client gave up; standard error has the reason.
        SystemExit: A record was lost or refused, so the measurement is invalid.
    """
    with ExitStack() as stack:
        clients = []
        for each in settings:
            clients.append(Client(mode, each, core))
            stack.callback(clients[-1].end)

        def say(word: str) -> list[str]:
            for client in clients:
                client.say(word)
            return [client.answer() for client in clients]

        say(str(server.port))
        if mode == "produce":
            touch_pages(
                sum(each["records"] * loads.LENGTHS[each["lengths"]].median for each in settings) * TOUCHED
            )
        forget_peak(server.pid)
        before_ns = cpu_ns(server.pid)
        say("go")
        spent_ns = cpu_ns(server.pid) - before_ns
        peak_mb = peak_bytes(server.pid) / 1e6
        reports: list[Report] = [json.loads(text) for text in say("report")]
    problems = [problem for report in reports for problem in report["problems"]]
    if problems or not all(report["records"] for report in reports):
        sys.exit(f"not every record came through: {problems[:3]}")
    if spent_ns <= 0:
        sys.exit(f"{spent_ns} ns of CPU: the window measured nothing")
    records = sum(report["records"] for report in reports)
    return RecordWindow(
        cpu_us=spent_ns / 1000 / records,
        cpu_us_per_mb=spent_ns * 1000 / sum(report["bytes"] for report in reports),
        records_per_request=records / max(1, sum(report["requests"] for report in reports)),
        core=spent_ns / 1e9 / max(report["seconds"] for report in reports),
        peak_mb=peak_mb,
    )


def median(windows: Sequence[RecordWindow], of: Callable[[RecordWindow], float]) -> float:
    return statistics.median(of(window) for window in windows)
