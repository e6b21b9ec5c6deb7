"""The produce and fetch benches: the compared servers, alternating rounds, and the report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from bench.comparison import Comparison, Goal, compared
from bench.harness import Server, cores, head, spread, started
from bench.record_window import RecordWindow, median
from bench.rows import ASYNCIO, MOCK, OURS, UVLOOP

KAFKA = "Apache Kafka"
SERVERS = (UVLOOP, ASYNCIO, MOCK, KAFKA)

Windows = dict[str, list[RecordWindow]]
"""The counted windows of each server that ran."""


class Row(Protocol):
    """One kind of load."""

    @property
    def title(self) -> str: ...

    @property
    def goals(self) -> tuple[Goal, ...]: ...


R = TypeVar("R", bound=Row)


def command(server: str) -> list[str | Path]:
    if server == MOCK:
        return [sys.executable, "-m", "bench.mock_broker"]
    if server == KAFKA:
        return [sys.executable, "-m", "bench.kafka_broker"]
    loop = "uvloop" if server == UVLOOP else "asyncio"
    return [sys.executable, "-m", "bench.host", "--loop", loop, "--receiver", "noop", "--clock", "real"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The numbers of rounds of a measurement."""

    warm_up: int
    """Rounds that are not counted: a Java server is compiled while it runs."""
    rounds: int
    load_core: int | None

    def interleaved(
        self, servers: Mapping[str, Server], window: Callable[[str, Server], RecordWindow]
    ) -> Windows:
        """Alternate the servers, so that a change of the machine's speed affects all of them."""
        windows: Windows = {name: [] for name in servers}
        for number in range(self.warm_up + self.rounds):
            for name, server in servers.items():
                measured = window(name, server)
                if number >= self.warm_up:
                    windows[name].append(measured)
        return windows

    @classmethod
    def main(
        cls,
        name: str,
        description: str | None,
        rows: Mapping[str, R],
        run: Callable[[str, dict[str, Server], Bench], Windows],
        argv: Sequence[str],
    ) -> list[Comparison]:
        """Run the rows that the command line names, each on all servers; return the lines of the table."""
        arguments = arguments_of(description, list(rows), argv)
        lines: list[Comparison] = []
        server_core, load_core = cores()
        bench = cls(warm_up=arguments.warm_up, rounds=arguments.rounds, load_core=load_core)
        results = {}
        print(head(name), file=sys.stderr)
        with ExitStack() as stack:
            servers = dict(started(stack, arguments.servers, command, server_core))
            for row in arguments.row or rows:
                windows = run(row, servers, bench)
                results[row] = {server: [asdict(each) for each in many] for server, many in windows.items()}
                if not arguments.json:
                    lines += report(f"{name}, {row}", rows[row], windows)
        if arguments.json:
            print(json.dumps(results, indent=1))
        return lines


def arguments_of(description: str | None, rows: Sequence[str], argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--row", choices=rows, action="append", help="only this row; may be repeated")
    parser.add_argument("--server", dest="servers", choices=SERVERS, action="append", help="only this server")
    parser.add_argument("--warm-up", type=int, default=3, help="rounds that are not counted")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="all windows as JSON instead of tables")
    arguments = parser.parse_args(argv)
    arguments.servers = arguments.servers or SERVERS
    return arguments


def report(name: str, row: Row, windows: Windows) -> list[Comparison]:
    """Print the figures of a row; return its lines of the table."""
    print(f"\n{row.title}")
    heads = f"{'CPU µs/record':>24}{'µs/MB':>8}{'per core-s':>12}{'records/request':>17}{'core':>7}"
    print(f"  {'server':<18}{heads}")
    medians = {}
    for server, of_server in windows.items():
        medians[server] = median(of_server, lambda window: window.cpu_us)
        cpu_us = spread([window.cpu_us for window in of_server], 3)
        per_mb_us = median(of_server, lambda window: window.cpu_us_per_mb)
        per_request = median(of_server, lambda window: window.records_per_request)
        core = median(of_server, lambda window: window.core)
        figures = (
            f"{cpu_us:>24}{per_mb_us:>8,.0f}{1e6 / medians[server]:>12,.0f}{per_request:>17,.0f}{core:>7.2f}"
        )
        print(f"  {server:<18}{figures}", flush=True)
    lines = list(compared(name, "µs", medians, OURS, row.goals))
    for line in lines:
        print(f"  {line}")
    return lines
