"""CPU time of one telemetry push of recorded clients: odradek compared with librdkafka's mock broker and a C
epoll server, in one run.

Usage, from the folder above: ``python -m bench.push [--row Java] [--rounds 3] [--seconds 1] [--json]``
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
from typing import Final

from bench import loads
from bench.comparison import Comparison, Goal, compared
from bench.generator import Load, Measurement, measure, median_cpu_us, refused, write_payloads
from bench.harness import Server, build, cores, head, spread, started
from bench.servers import C_EPOLL, LOG, MOCK, OURS, UVLOOP, host_command

SERVERS: Final = (UVLOOP, LOG, MOCK, C_EPOLL)
GOALS: Final = (Goal(peer=MOCK, most=1), Goal(who=LOG, peer=MOCK, most=2))
CONNECTIONS, INSTANCES = 512, 8
SEEDS: Final = 3
STRIDE: Final = 120
"""A multiple of the number of recordings in each mix, so that an instance stays what it is."""
VARIANTS: Final = 4
"""Different pushes of an instance."""


def command(server: str) -> list[str | Path]:
    """How to start a server."""
    if server == C_EPOLL:
        return [build("epoll_server")]
    if server == MOCK:
        return [sys.executable, "-m", "bench.mock_broker"]
    return host_command(server, "--receiver", "joining", "--enrich", "--clock", "real")


def run(mix: str, arguments: argparse.Namespace) -> dict[str, list[Measurement]]:
    """Alternate the servers, so that a change of the machine's speed affects all of them."""
    server_core, load_core = cores()
    windows: dict[str, list[Measurement]] = {}
    with ExitStack() as stack:
        of_seed = []
        for seed in range(SEEDS):
            file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".pushes"))
            write_payloads(file, loads.pushes(mix, seed, STRIDE * VARIANTS))
            path = Path(file.name)
            load = Load(connections=CONNECTIONS, instances=INSTANCES, stride=STRIDE, payloads=path)
            of_seed.append(load)
        servers = dict(started(stack, arguments.servers, command, server_core))
        for number in range(arguments.rounds):
            for name, server in servers.items():
                load = of_seed[number % SEEDS]
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


def report(mix: str, windows: dict[str, list[Measurement]]) -> Iterator[Comparison]:
    """Print the figures of a row; return its lines of the table."""
    print(f"\npush, {mix}")
    print(f"  {'server':<18}{'CPU µs/request':>22}{'per core-s':>12}{'p50 µs':>9}{'p99 µs':>9}{'core':>7}")
    for server, of_server in windows.items():
        cpu_us = median_cpu_us(of_server)
        p50_us = spread([window.p50_us for window in of_server], 0).split()[0]
        p99_us = spread([window.p99_us for window in of_server], 0).split()[0]
        core = spread([window.core for window in of_server], 2).split()[0]
        all_us = spread([window.cpu_us for window in of_server])
        print(f"  {server:<18}{all_us:>22}{1e6 / cpu_us:>12,.0f}{p50_us:>9}{p99_us:>9}{core:>7}")
    medians = {server: median_cpu_us(of_server) for server, of_server in windows.items()}
    for line in compared(f"push, {mix}", "µs", medians, OURS, GOALS):
        print(f"  {line}")
        yield line


def comparisons(rounds: int) -> list[Comparison]:
    """The lines of the table."""
    return main(["--rounds", str(rounds)])


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=loads.RECORDINGS, action="append", help="only this mix of clients")
    parser.add_argument("--server", dest="servers", choices=SERVERS, action="append", help="only this server")
    parser.add_argument("--rounds", type=int, default=SEEDS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one window")
    parser.add_argument("--json", action="store_true", help="all windows as JSON instead of tables")
    arguments = parser.parse_args(argv)
    arguments.servers = arguments.servers or SERVERS
    return arguments


def main(argv: Sequence[str]) -> list[Comparison]:
    """Run the rows that the command line names; return the lines of the table.

    Raises:
        UnavailableError: There is no gcc.
    """
    arguments = arguments_of(argv)
    build("load")
    lines: list[Comparison] = []
    results = {}
    print(head("push"), file=sys.stderr)
    for mix in arguments.row or loads.RECORDINGS:
        windows = run(mix, arguments)
        results[mix] = {server: [asdict(window) for window in many] for server, many in windows.items()}
        lines += [] if arguments.json else report(mix, windows)
    if arguments.json:
        print(json.dumps(results, indent=1))
    return lines


if __name__ == "__main__":
    main(sys.argv[1:])
