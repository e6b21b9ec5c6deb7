"""Pushes per second and CPU per push of `odradek gateway` with one and two workers, and of `odradek serve`.

`serve` alone, and behind such a gateway; beside them records that pass the gateway, and a relay in Go with
one and two cores.

All processes share two cores. The scale-up of two workers is

    (requests/s with two / cores that the load leaves them) / (requests/s with one / cores that it uses) * 2

so the share of the load generator, and of the cluster, is taken away from the two cores. Everything else that
keeps two workers from two cores counts against them: an uneven distribution, waiting, other programs.

Usage, from the folder above: ``python -m bench.workers [--row small] [--rounds 3] [--seconds 2]``
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contrib.capture.ports import free_range

from bench.comparison import Comparison, Goal
from bench.gateway_relays import FRAMES, GO_MODES, RecordLoad, program
from bench.gateway_relays import Row as RecordRow
from bench.generator import Generator, Load, answer, mark, write_payloads
from bench.harness import (
    PATIENCE_S,
    UnavailableError,
    build,
    close,
    cpu_ns,
    head,
    pipes,
    running,
    skip,
    spawn,
    spread,
)
from bench.payloads import PAYLOADS
from support.gateways import GatewayProcess
from support.hosts import ServeProcess

CORES: Final = 2
GOAL: Final = 1.7
ROWS: Final = {"small": "small", "java": "java25k", "librd": "librd6k"}
CONNECTIONS: Final = 256
RECORDS_ROW: Final = "records"
BUSY: Final = 0.85
"""The part of a core that one worker uses at least if it is the bottleneck."""
SERVE, PASSED = "serve", "serve behind a gateway"
ONE, TWO = "gateway, 1 worker", "gateway, 2 workers"
PASSED_TWO: Final = f"{PASSED}, 2 workers"
GO: Final = {1: "Go, 1 core", 2: "Go, 2 cores"}
RECORDS: Final = RecordRow(
    title="Produce 1 kB, 5 in flight", kind="produce", size=1_000, connections=CONNECTIONS, depth=5
)
EVERYTHING: Final = (
    "subscriptions.bench.metrics=*",
    "subscriptions.bench.interval.ms=100",
    "telemetry.linger.ms=0",  # a closed loop would wait for the pushes that are written together
)


class Serving(ServeProcess):
    """``odradek serve`` without throttling."""

    program = ("-m", "bench.unhurried")


class Passing(GatewayProcess):
    """``odradek gateway`` without throttling."""

    program = ("-m", "bench.unhurried")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server under load."""

    port: int
    own: tuple[int, ...]
    """The processes that are measured, with their descendants."""
    others: tuple[int, ...] = ()
    """Those of the cluster that it leads to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window of load."""

    per_s: float
    cpu_us: float
    own_cores: float
    other_cores: float
    """Of load and cluster."""


def cpu_of(pids: Sequence[int]) -> int:
    return sum(cpu_ns(pid) for pid in pids)


def measure(server: Server, load: Generator, seconds: float) -> Window:
    """Put a server under load, let it warm up for a third of the time, and measure one window.

    Raises:
        UnavailableError: The generator gave up, or pushes were refused.
    """
    generator = spawn(load.command(server.port), None)
    stdin, stdout = pipes(generator)
    others = (*server.others, generator.pid)
    try:
        answer(stdout)
        time.sleep(seconds / 3)
        mark(stdin, stdout)
        before_ns, others_before_ns = cpu_of(server.own), cpu_of(others)
        time.sleep(seconds)
        window = mark(stdin, stdout)
        spent_ns, others_ns = cpu_of(server.own) - before_ns, cpu_of(others) - others_before_ns
    finally:
        close(stdin)
        generator.wait(PATIENCE_S)
        close(stdout)
    if window["errors"]:
        raise UnavailableError(f"requests were refused, by error code: {window['errors']}")
    elapsed_ns = window["seconds"] * 1e9
    return Window(
        per_s=window["requests"] / window["seconds"],
        cpu_us=spent_ns / 1000 / max(1, window["requests"]),
        own_cores=spent_ns / elapsed_ns,
        other_cores=others_ns / elapsed_ns,
    )


@contextmanager
def served(folder: Path) -> Iterator[ServeProcess]:
    """A host that stores pushes in its log."""
    process = Serving(
        *options("listeners=PLAINTEXT://127.0.0.1:0", f"data.dir={folder}", "node.id=1", *EVERYTHING)
    )
    try:
        yield process
    finally:
        ended(process)


@contextmanager
def gateway(upstream: str, folder: Path, workers: int, *settings: str) -> Iterator[GatewayProcess]:
    """A gateway with workers that stores pushes in their logs, or passes them."""
    values = [f"listeners=PLAINTEXT://127.0.0.1:{free_range(2)}", f"data.dir={folder}", "gateway.nodes=1"]
    values += ["gateway.drain.ms=0", *EVERYTHING, *settings]
    process = Passing("--upstream", upstream, "--workers", str(workers), *options(*values))
    try:
        yield process
    finally:
        ended(process)


def ended(process: ServeProcess) -> None:
    """Stop it, whatever it does."""
    if process.process.poll() is None:
        process.terminate(60)


def options(*values: str) -> list[str]:
    return [each for value in values for each in ("--set", value)]


def port_of(process: ServeProcess) -> int:
    return int(process.bootstrap.rpartition(":")[2])


@contextmanager
def hosts(folder: Path) -> Iterator[dict[str, Server]]:
    """The hosts and gateways that take pushes."""
    with ExitStack() as stack:
        host = stack.enter_context(served(folder / "host"))
        host_pid = host.process.pid
        found = {SERVE: Server(port=port_of(host), own=(host_pid,))}
        for name, workers, settings in (
            (ONE, 1, ()),
            (TWO, 2, ()),
            (PASSED, 1, ("gateway.telemetry=pass", "gateway.observe=none")),
            (PASSED_TWO, 2, ("gateway.telemetry=pass", "gateway.observe=none")),
        ):
            process = stack.enter_context(gateway(host.bootstrap, folder / name, workers, *settings))
            pid = process.process.pid
            own, others = ((pid, host_pid), ()) if settings else ((pid,), (host_pid,))
            found[name] = Server(port=port_of(process), own=own, others=others)
        yield found


@contextmanager
def relays(folder: Path) -> Iterator[dict[str, Server]]:
    """Gateways and relays in Go that pass records to a broker that costs little."""
    with ExitStack() as stack:
        broker = stack.enter_context(running([program(), "broker"]))
        upstream = f"127.0.0.1:{broker.port}"
        found = {}
        for cores, name in GO.items():
            command: list[str | Path] = [
                "env",
                f"GOMAXPROCS={cores}",
                program(),
                "relay",
                GO_MODES[FRAMES],
                upstream,
            ]
            relay = stack.enter_context(running(command))
            found[name] = Server(port=relay.port, own=(relay.pid,), others=(broker.pid,))
        for workers, name in ((1, ONE), (2, TWO)):
            process = stack.enter_context(gateway(upstream, folder / name, workers))
            own = (process.process.pid,)
            found[name] = Server(port=port_of(process), own=own, others=(broker.pid,))
        yield found


def scale_up(windows: Mapping[str, Sequence[Window]], one: str, two: str) -> float:
    """The scale-up; see the top. NaN if one of them is missing, or the first is not the bottleneck."""
    if one not in windows or two not in windows or median(windows[one], "own_cores") < BUSY:
        return math.nan
    first = statistics.median(each.per_s / each.own_cores for each in windows[one])
    second = statistics.median(each.per_s / (CORES - each.other_cores) for each in windows[two])
    return CORES * second / first


def median(windows: Sequence[Window], field: str) -> float:
    return float(statistics.median(getattr(each, field) for each in windows))


def report(
    title: str, windows: Mapping[str, Sequence[Window]], pairs: Sequence[tuple[str, str]]
) -> Iterator[Comparison]:
    """Print the figures of a row; yield the scale-up of each pair."""
    print(f"\n{title}")
    print(f"  {'server':<34}{'requests/s':>28}{'CPU µs/request':>24}{'cores':>7}{'others':>8}")
    for name, found in windows.items():
        per_s, cpu_us = spread([each.per_s for each in found], 0), spread([each.cpu_us for each in found])
        cores = f"{median(found, 'own_cores'):>7.2f}{median(found, 'other_cores'):>8.2f}"
        print(f"  {name:<34}{per_s:>28}{cpu_us:>24}{cores}")
    for one, two in pairs:
        raw = median(windows[two], "per_s") / median(windows[one], "per_s")
        goal = Goal(least=GOAL) if one == ONE else None
        line = Comparison(
            row=f"{title}: scale-up of {two}", unit="times", ours=scale_up(windows, one, two), goal=goal
        )
        print(f"  {line}; of wall time {raw:.2f}")
        yield line


def run(
    servers: Mapping[str, Server], load: Generator, arguments: argparse.Namespace
) -> dict[str, list[Window]]:
    """Alternate the servers, so that a change of the machine's speed affects all of them."""
    windows: dict[str, list[Window]] = {}
    for _ in range(arguments.rounds):
        for name, server in servers.items():
            windows.setdefault(name, []).append(measure(server, load, arguments.seconds))
    return windows


def lines(arguments: argparse.Namespace) -> Iterator[Comparison]:
    """Measure and print; yield the scale-ups."""
    if len(os.sched_getaffinity(0)) < CORES:
        skip("workers", "needs two cores")
        return
    with tempfile.TemporaryDirectory() as root:
        rows = [row for row in arguments.rows if row in ROWS]
        if rows:
            build("load")
            with hosts(Path(root) / "pushes") as servers:
                for row in rows:
                    windows = run(servers, load_of(Path(root), row), arguments)
                    yield from report(f"push, {row}", windows, [(ONE, TWO), (PASSED, PASSED_TWO)])
        if RECORDS_ROW in arguments.rows:
            program()
            with relays(Path(root) / "records") as servers:
                windows = run(servers, RecordLoad(row=RECORDS, secure=False), arguments)
            yield from report(RECORDS.title, windows, [(GO[1], GO[2]), (ONE, TWO)])


def load_of(root: Path, row: str) -> Load:
    """The load of a row of pushes."""
    payload = PAYLOADS[ROWS[row]]()
    file = root / f"{row}.otlp"
    with file.open("wb") as stream:
        write_payloads(stream, [(payload.codec, payload.wire)])
    return Load(connections=CONNECTIONS, payloads=file)


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    return lines(arguments_of(["--rounds", str(rounds)]))


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", dest="rows", choices=[*ROWS, RECORDS_ROW], action="append", help="only this")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one window")
    arguments = parser.parse_args(argv)
    arguments.rows = arguments.rows or [*ROWS, RECORDS_ROW]
    return arguments


def main() -> int:
    """Measure and print. Returns 1 if a goal is missed."""
    arguments = arguments_of(sys.argv[1:])
    print(head("workers"), file=sys.stderr)
    try:
        return int(sum(each.is_open for each in lines(arguments)) > 0)
    except UnavailableError as reason:
        skip("workers", reason)
        return 0


if __name__ == "__main__":
    sys.exit(main())
