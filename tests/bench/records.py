"""CPU time of one record, produced or fetched: odradek with and without odradek-speed, and Apache Kafka.

The client is librdkafka at full speed. Its records are drawn from distributions (`loads`): log-normal
lengths, keys, headers. Rounds take different seeds of them in turn.

Usage, from the folder above: ``python -m bench.records [--row TEXT] [--rounds 3] [--quick] [--json]``
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from bench.comparison import Comparison, Goal, compared
from bench.harness import Server, cores, head, spread, started
from bench.record_window import RecordWindow, measure, median
from bench.servers import KAFKA, OURS, PLAIN_LOOP, UVLOOP, host_command

SERVERS: Final = (UVLOOP, PLAIN_LOOP, KAFKA)
RECORDS: Final = {"50-150 B": 150_000, "200-2000 B": 60_000, "50 B-100 kB": 30_000}
SEEDS: Final = 3
WARM_UP: Final = 2
"""Rounds that are not counted: a Java server is compiled while it runs."""
FETCHED: Final = {"fetch.message.max.bytes": 1 << 20, "fetch.max.bytes": 1 << 20}

Windows = dict[str, list[RecordWindow]]
"""The counted windows of each server that ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of load."""

    mode: str
    lengths: str
    codec: str
    partitions: int
    quick: bool = False

    @property
    def title(self) -> str:
        places = f"{self.partitions} partition{'s' * (self.partitions > 1)}"
        return f"{self.mode}, {self.lengths}, {self.codec}, {places}"

    @property
    def goals(self) -> tuple[Goal, ...]:
        return (Goal(peer=KAFKA, most=0.8),)

    def settings(self, seed: int) -> dict[str, Any]:
        """Those of the producing client."""
        return {
            "topic": f"{self.lengths}-{self.codec}-{self.partitions}-{self.mode}-{seed}".replace(" ", "_"),
            "records": RECORDS[self.lengths],
            "lengths": self.lengths,
            "partitions": self.partitions,
            "seed": seed,
            "client": {"linger.ms": 20, "compression.type": self.codec},
        }

    def measure(self, server: Server, seed: int, core: int | None) -> RecordWindow:
        """One window."""
        settings = self.settings(seed)
        if self.mode == "fetch":
            settings |= {"client": FETCHED}
        return measure(server, self.mode, settings, core)


QUICK: Final = {
    ("produce", "50-150 B", "none", 1),
    ("produce", "50-150 B", "zstd", 3),
    ("produce", "200-2000 B", "lz4", 3),
    ("produce", "50 B-100 kB", "zstd", 50),
    ("fetch", "200-2000 B", "lz4", 3),
}
ROWS: Final = [
    Row(
        mode=mode,
        lengths=lengths,
        codec=codec,
        partitions=places,
        quick=(mode, lengths, codec, places) in QUICK,
    )
    for mode in ("produce", "fetch")
    for lengths in RECORDS
    for codec in ("none", "lz4", "zstd")
    for places in ((1, 3) if lengths != "50 B-100 kB" else (50,))
]


def command(server: str) -> list[str | Path]:
    if server == KAFKA:
        return [sys.executable, "-m", "bench.kafka_broker"]
    return host_command(server, "--receiver", "noop", "--clock", "real")


def run(row: Row, servers: Mapping[str, Server], rounds: int, core: int | None) -> Windows:
    """Alternate the servers, so that a change of the machine's speed affects all of them."""
    if row.mode == "fetch":
        for server in servers.values():
            for seed in range(SEEDS):
                measure(server, "produce", row.settings(seed) | {"warm": False}, core)
    windows: Windows = {name: [] for name in servers}
    for number in range(-WARM_UP, rounds):
        for name, server in servers.items():
            window = row.measure(server, number % SEEDS, core)
            if number >= 0:
                windows[name].append(window)
    return windows


class Named(Protocol):
    """What a report needs of a row."""

    @property
    def title(self) -> str: ...
    @property
    def goals(self) -> tuple[Goal, ...]: ...


def report(row: Named, windows: Windows) -> Iterator[Comparison]:
    """Print the figures of a row; return its lines of the table."""
    print(f"\n{row.title}")
    print(f"  {'server':<32}{'CPU µs/record':>24}{'µs/MB':>8}{'records/request':>17}{'core':>7}")
    for server, found in windows.items():
        cpu_us = spread([window.cpu_us for window in found], 3)
        per_mb_us = median(found, lambda window: window.cpu_us_per_mb)
        per_request = median(found, lambda window: window.records_per_request)
        core = median(found, lambda window: window.core)
        print(f"  {server:<32}{cpu_us:>24}{per_mb_us:>8,.0f}{per_request:>17,.0f}{core:>7.2f}", flush=True)
    medians = {server: median(found, lambda window: window.cpu_us) for server, found in windows.items()}
    for line in compared(row.title, "µs", medians, OURS, row.goals):
        print(f"  {line}")
        yield line


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    return measured(["--rounds", str(rounds)])


def quick(rounds: int) -> Iterator[Comparison]:
    """A part of them."""
    return measured(["--rounds", str(rounds), "--quick"])


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", default="", help="only rows whose names contain this")
    parser.add_argument("--server", dest="servers", choices=SERVERS, action="append", help="only this server")
    parser.add_argument("--rounds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="only the rows of `python -m bench --quick`")
    parser.add_argument("--json", action="store_true", help="all windows as JSON instead of tables")
    return parser.parse_args(argv)


def measured(argv: Sequence[str]) -> Iterator[Comparison]:
    """Run the rows that the command line names, each on all servers; the lines of the table."""
    arguments = arguments_of(argv)
    server_core, load_core = cores()
    results = {}
    print(head("records"), file=sys.stderr)
    with ExitStack() as stack:
        servers = dict(started(stack, arguments.servers or SERVERS, command, server_core))
        for row in ROWS:
            if arguments.row in row.title and row.quick >= arguments.quick:
                windows = run(row, servers, arguments.rounds, load_core)
                results[row.title] = {name: [asdict(each) for each in many] for name, many in windows.items()}
                if not arguments.json:
                    yield from report(row, windows)
    if arguments.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    for _ in measured(sys.argv[1:]):
        pass
