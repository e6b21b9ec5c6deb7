"""The rows of the TLS bench with records: what TLS costs while clients keep a server busy."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.comparison import Comparison, Goal
from bench.harness import forget_peak, peak_bytes, spread
from bench.record_window import RecordWindow, measure_all
from bench.secured import KAFKA, ODRADEK, PLAIN, TLS, Secured
from support.certificates import Files

RECORDS: Final = 100_000
LENGTHS: Final = "200-2000 B"
TOPIC: Final = "records"
MOST_CLIENTS: Final = 4
FETCHED: Final = {"fetch.message.max.bytes": 1 << 20, "fetch.max.bytes": 1 << 20}
PRODUCED: Final = {"linger.ms": 5, "enable.idempotence": False}
"""An idempotent producer has five requests in flight, so no backlog is built."""
GROWTH_MB: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One kind of load, on each listener."""

    mode: str
    clients: int
    times: float
    """The most CPU over TLS beside plaintext."""

    @property
    def title(self) -> str:
        return f"{self.mode} of records of {LENGTHS}, {self.clients} client{'s' * (self.clients > 1)}"


LOADS: Final = (
    Load(mode="produce", clients=1, times=1 / 0.5),
    Load(mode="produce", clients=4, times=1 / 0.4),
    Load(mode="fetch", clients=1, times=1 / 0.35),
)
"""The last is compared with `sendfile`."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A server by one of its listeners."""

    pid: int
    port: int


WARM_UP: Final = 2
"""Rounds that are not counted. The first one writes what is fetched."""


@dataclass(slots=True)
class Measured:
    """The windows of one load on one listener, and the growth of the server since the bench began."""

    windows: list[RecordWindow] = field(default_factory=list)
    growth_mb: float = 0.0

    @property
    def us_per_mb(self) -> float:
        """Microseconds of CPU for a megabyte."""
        return statistics.median(each.cpu_us_per_mb for each in self.windows)


Windows = dict[tuple[str, str, str], Measured]
"""By title, server and listener."""


def topics() -> list[str]:
    """The topics of the clients."""
    return [f"{TOPIC}-{number}" for number in range(MOST_CLIENTS)]


def settings(load: Load, listener: str, ca: str) -> list[dict[str, Any]]:
    """The settings of the clients."""
    security = {"security.protocol": "SSL", "ssl.ca.location": ca} if listener == TLS else {}
    client = PRODUCED if load.mode == "produce" else FETCHED
    shared = {
        "records": RECORDS // load.clients,
        "lengths": LENGTHS,
        "passes": 1,
        "security": security,
        "client": client,
    }
    return [shared | {"topic": topic} for topic in topics()[: load.clients]]


def measure(running: Sequence[Secured], folder: Path, core: int | None, rounds: int) -> Windows:
    """Let servers and listeners take turns."""
    found: Windows = {}
    ca, before_mb = Files(folder).ca, {}
    for server in running:
        forget_peak(server.pid)
        before_mb[server.name] = peak_bytes(server.pid) / 1e6
    for number in range(WARM_UP + rounds):
        for load in LOADS:
            for server in running:
                for listener in (PLAIN, TLS):
                    there = Listener(server.pid, server.ports[listener])
                    window = measure_all(there, load.mode, settings(load, listener, ca), core)
                    measured = found.setdefault((load.title, server.name, listener), Measured())
                    measured.growth_mb = max(measured.growth_mb, window.peak_mb - before_mb[server.name])
                    if number >= WARM_UP:
                        measured.windows.append(window)
    return found


def lines(windows: Windows) -> Iterator[Comparison]:
    """The lines of the table: CPU per megabyte over TLS, beside plaintext and beside Kafka over TLS."""
    for load in LOADS:
        ours, row, unit = windows[load.title, ODRADEK, TLS], f"{load.title}, TLS", "µs/MB"
        cost, plain = ours.us_per_mb, windows[load.title, ODRADEK, PLAIN].us_per_mb
        beside = Goal(peer=PLAIN, most=load.times)
        yield Comparison(row=row, unit=unit, ours=cost, peer=PLAIN, theirs=plain, goal=beside)
        kafka = windows.get((load.title, KAFKA, TLS))
        if kafka is not None:
            theirs, goal = kafka.us_per_mb, Goal(peer=KAFKA, most=1)
            yield Comparison(row=row, unit=unit, ours=cost, peer=KAFKA, theirs=theirs, goal=goal)
        yield Comparison(row=f"{row}, growth", unit="MB", ours=ours.growth_mb, goal=Goal(most=GROWTH_MB))


def report(windows: Windows) -> None:
    """Print the figures."""
    print(f"{'MB per second of CPU':<40}{'server':>14}{'listener':>12}{'growth, MB':>12}")
    for (title, server, listener), measured in windows.items():
        rates = spread([1e6 / each.cpu_us_per_mb for each in measured.windows], 0)
        print(f"{title:<40}{server:>14}{listener:>12}{measured.growth_mb:>12.1f}  {rates}")
    for line in lines(windows):
        print(line)
