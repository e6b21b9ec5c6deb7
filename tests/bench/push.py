"""CPU time of one telemetry push: odradek compared with a C epoll server and librdkafka's mock broker, in one
run.

Usage, from the folder above: ``python -m bench.push [--row small] [--rounds 5] [--seconds 1] [--json]``
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from bench.comparison import Comparison, compared
from bench.generator import Load, Measurement, measure, median_cpu_us, refused
from bench.harness import Server, UnavailableError, build, cores, head, spread, started
from bench.payloads import PAYLOADS
from bench.rows import C_EPOLL, MOCK, OURS, ROWS, SERVERS, UVLOOP, Row


def command(server: str, row: Row) -> list[str | Path]:
    """How to start a server for a row."""
    if server == C_EPOLL:
        return [build("epoll_server")]
    if server == MOCK:
        return [sys.executable, "-m", "bench.mock_broker"]
    host: list[str | Path] = [sys.executable, "-m", "bench.host", "--receiver", row.receiver]
    host += ["--loop", "uvloop" if server == UVLOOP else "asyncio"]
    return [*host, "--enrich"] if row.enrich else host


def run(row: Row, arguments: argparse.Namespace) -> dict[str, list[Measurement]]:
    """Alternate the servers, so that a change of the machine's speed affects all of them."""
    server_core, load_core = cores()
    payload = PAYLOADS[row.payload]()
    windows: dict[str, list[Measurement]] = {}
    with tempfile.NamedTemporaryFile(suffix=".otlp") as file, ExitStack() as stack:
        file.write(payload.wire)
        file.flush()
        depth, connections = arguments.depth, arguments.connections
        load = Load(connections=connections, depth=depth, codec=payload.codec, payload=Path(file.name))
        servers = dict(started(stack, arguments.servers, lambda name: command(name, row), server_core))
        for _ in range(arguments.rounds):
            for name, server in servers.items():
                window = measure(server, load, seconds=arguments.seconds, core=load_core)
                windows.setdefault(name, []).append(window)
    for name, server in servers.items():
        check_delivery(name, server, windows[name])
    return windows


def check_delivery(name: str, server: Server, windows: Sequence[Measurement]) -> None:
    """Check that answered pushes were processed: the host's receiver got at least the pushes of the
    windows.
    """
    if name in OURS:
        received = json.loads(server.last_words)["pushes"]
        if received < sum(window.requests for window in windows):
            sys.exit(f"{name}: the receiver saw {received} pushes, fewer than were accepted")
    if codes := refused(windows):
        sys.exit(f"{name}: pushes were refused, by error code: {codes}")


def report(name: str, windows: dict[str, list[Measurement]]) -> list[Comparison]:
    """Print the figures of a row; return its lines of the table."""
    row = ROWS[name]
    print(f"\n{row.title}")
    print(f"  {'server':<18}{'CPU µs/request':>22}{'per core-s':>12}{'p50 µs':>9}{'p99 µs':>9}{'core':>7}")
    for server, of_server in windows.items():
        cpu_us = median_cpu_us(of_server)
        p50_us = spread([window.p50_us for window in of_server], 0).split()[0]
        p99_us = spread([window.p99_us for window in of_server], 0).split()[0]
        core = spread([window.core for window in of_server], 2).split()[0]
        all_us = spread([window.cpu_us for window in of_server])
        print(f"  {server:<18}{all_us:>22}{1e6 / cpu_us:>12,.0f}{p50_us:>9}{p99_us:>9}{core:>7}")
    medians = {server: median_cpu_us(of_server) for server, of_server in windows.items()}
    lines = list(compared(f"push, {name}", "µs", medians, OURS, row.goals))
    for line in lines:
        print(f"  {line}")
    return lines


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    build("load")
    arguments = arguments_of(["--rounds", str(rounds)])
    for name, row in ROWS.items():
        yield from report(name, run(row, arguments))


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS, action="append", help="only this row; may be repeated")
    parser.add_argument("--server", dest="servers", choices=SERVERS, action="append", help="only this server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one window")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--depth", type=int, default=1, help="pushes in flight on each connection")
    parser.add_argument("--json", action="store_true", help="all windows as JSON instead of tables")
    arguments = parser.parse_args(argv)
    arguments.servers = arguments.servers or SERVERS
    return arguments


def main() -> None:
    arguments = arguments_of(sys.argv[1:])
    try:
        build("load")
    except UnavailableError as reason:
        sys.exit(f"skipped: {reason}")
    results = {}
    print(head("push"), file=sys.stderr)
    for name in arguments.row or ROWS:
        windows = run(ROWS[name], arguments)
        results[name] = {server: [asdict(window) for window in many] for server, many in windows.items()}
        if not arguments.json:
            report(name, windows)
    if arguments.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
