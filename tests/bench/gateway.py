"""CPU time, latency and memory of `odradek gateway`, compared with two relays in Go and a direct connection.

Usage, from the folder above: ``python -m bench.gateway [--row TEXT] [--tls | --plain] [--rounds 3]``
"""

from __future__ import annotations

import argparse
import math
import socket
import ssl
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from contrib.fleet.descriptors import allow_descriptors

from bench.comparison import Comparison, Goal, compared
from bench.frames import API_VERSIONS_V3, ask
from bench.gateway_relays import BARE, DIRECT, FRAMES, FULL, RELAYS, RecordLoad, Row, program, relays
from bench.generator import Measurement, measure, median_cpu_us
from bench.growth import grown
from bench.harness import PATIENCE_S, Server, UnavailableError, cores, head, skip, spread

ROWS: Final = (
    Row(title="Produce 1 MB", kind="produce", size=1_000_000, connections=4),
    Row(title="Fetch 1 MB", kind="fetch", size=1_000_000, connections=4),
    Row(title="Produce 64 kB", kind="produce", size=64_000, connections=8),
    Row(title="Fetch 64 kB", kind="fetch", size=64_000, connections=8),
    Row(title="Produce 10 x 1 kB", kind="produce", size=1_000, connections=8, partitions=10),
    Row(title="Fetch 10 x 1 kB", kind="fetch", size=1_000, connections=8, partitions=10),
    Row(title="Produce 1 kB, 5 in flight", kind="produce", size=1_000, connections=8, depth=5),
    Row(title="Fetch 1 kB, 5 in flight", kind="fetch", size=1_000, connections=8, depth=5),
    Row(title="Produce 1 kB, one at a time", kind="produce", size=1_000, connections=1),
)
OF_GO: Final = 0.6
"""The part of the requests per CPU second of the relay that looks at frames."""
BYTES_PER_CORE_S: Final = {False: 1.2e9, True: 0.7e9}
"""By TLS, in requests of 64 kB and more."""
SMALL_US: Final = 12.0
"""CPU time of a pipelined request of 1 kB, without TLS."""
TELEMETRY_PART: Final = {False: 0.10, True: 0.02}
"""The part of telemetry and observation in the CPU time of requests, by whether they are large."""
P99: Final = 1.5
"""Times the added latency of the relay that looks at frames."""
IDLE_KIB: Final = 10
PAIRS: Final = 12
PAIR_S: Final = 0.4
"""One window of a pair: so short that the machine's speed is the same in both."""
BESIDE_BARE: Final = "odradek, beside"
"""The windows that alternate with those of the bare gateway."""
SETTLED_S: Final = 0.2
WARM_UP: Final = 200
SPARE_DESCRIPTORS: Final = 300

Windows = dict[str, list[Measurement]]


def run(row: Row, servers: dict[str, Server], secure: bool, arguments: argparse.Namespace) -> Windows:
    """Alternate the relays, so that a change of the machine's speed affects all of them."""
    _, load_core = cores()
    load = RecordLoad(row=row, secure=secure)
    windows: Windows = {}
    for _ in range(arguments.rounds):
        for name, server in servers.items():
            if name != BARE and (name != DIRECT or row.is_single):
                window = measure(server, load, seconds=arguments.seconds, core=load_core)
                windows.setdefault(name, []).append(window)
    if row.partitions == 1 and not row.is_single and {FULL, BARE} <= servers.keys():
        for _ in range(PAIRS):
            for name, server in ((BESIDE_BARE, servers[FULL]), (BARE, servers[BARE])):
                window = measure(server, load, seconds=PAIR_S, core=load_core)
                windows.setdefault(name, []).append(window)
    return windows


def median_us(windows: Sequence[Measurement], field: str) -> float:
    """Median of a latency over all windows."""
    return float(statistics.median(getattr(window, field) for window in windows))


def report(row: Row, windows: Windows, secure: bool) -> list[Comparison]:
    """Print the figures of a row; return its lines of the table."""
    direct = windows.pop(DIRECT, None)
    print(f"\n{row.title}{', TLS' if secure else ''}")
    titles = f"{'GB/core-s':>11}{'of Go':>7}{'p50 µs':>9}{'p99 µs':>9}{'core':>6}"
    print(f"  {'relay':<15}{'CPU µs/request':>24}{titles}")
    go = median_cpu_us(windows[FRAMES]) if FRAMES in windows else math.nan
    for name, found in windows.items():
        cpu_us = median_cpu_us(found)
        all_us = spread([window.cpu_us for window in found])
        p50, p99 = median_us(found, "p50_us"), median_us(found, "p99_us")
        if direct is not None:
            p50, p99 = p50 - median_us(direct, "p50_us"), p99 - median_us(direct, "p99_us")
        core = statistics.median(window.core for window in found)
        rate = row.partitions * row.size / cpu_us / 1000
        print(f"  {name:<15}{all_us:>24}{rate:>11.2f}{go / cpu_us:>7.2f}{p50:>9.0f}{p99:>9.0f}{core:>6.2f}")
    if direct is not None:
        first = spread([window.p50_us for window in direct], 0)
        print(f"  the latencies are added to those of a direct connection, whose p50 is {first} µs")
    lines = list(compare(row, windows, secure, direct))
    for line in lines:
        print(f"  {line}")
    return lines


def added_p99_us(windows: Windows, direct: Sequence[Measurement], name: str) -> float:
    """The added latency of a relay in the best round; NaN if it is missing."""
    if name not in windows:
        return math.nan
    return min(each.p99_us for each in windows[name]) - min(each.p99_us for each in direct)


def compare(
    row: Row, windows: Windows, secure: bool, direct: Sequence[Measurement] | None
) -> Iterator[Comparison]:
    """The lines of a row; figures are NaN if a relay is missing."""
    title = f"gateway, {row.title}{', TLS' if secure else ''}"
    cpu = {name: median_cpu_us(found) for name, found in windows.items() if name in RELAYS and name != BARE}
    goals = [Goal(peer=FRAMES, most=1 / OF_GO)]
    if row.is_bulk:
        goals.append(Goal(most=row.size / BYTES_PER_CORE_S[secure] * 1e6))
    elif row.partitions == 1 and not row.is_single and not secure:
        goals.append(Goal(most=SMALL_US))
    yield from compared(title, "µs", cpu, [FULL], goals)
    if row.partitions > 1:
        return
    if direct is not None:
        go, full = (added_p99_us(windows, direct, name) for name in (FRAMES, FULL))
        goal = Goal(peer=FRAMES, most=P99)
        added = f"{title}, added p99"
        yield Comparison(row=added, unit="µs", ours=full, peer=FRAMES, theirs=go, goal=goal)
    else:
        part = telemetry_part(windows)
        goal = Goal(most=TELEMETRY_PART[row.is_bulk])
        yield Comparison(row=f"{title}, part of telemetry", unit="of the CPU", ours=part, goal=goal)


def telemetry_part(windows: Windows) -> float:
    """The median of all pairs: the difference is as small as the change of the machine's speed in seconds."""
    pairs = zip(windows.get(BESIDE_BARE, []), windows.get(BARE, []), strict=True)
    parts = [1 - bare.cpu_us / full.cpu_us for full, bare in pairs]
    return statistics.median(parts) if parts else math.nan


def idle_bytes(server: Server, secure: bool, connections: int) -> float:
    """Private memory of a relay for each idle pair, after one request on it; NaN if it was not measured."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with ExitStack() as stack:

        def connect() -> None:
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(stack.enter_context(context.wrap_socket(plain)) if secure else plain, API_VERSIONS_V3)

        for _ in range(WARM_UP):
            connect()
        return grown(server, connections, connect, settled_s=SETTLED_S).each


def idle(servers: dict[str, Server], secure: bool, wanted: int) -> list[Comparison]:
    """Print the memory of idle pairs; return the lines of the table."""
    beside = WARM_UP + SPARE_DESCRIPTORS
    connections = min(wanted, allow_descriptors(2 * wanted + beside) - beside)
    print(f"\n{connections} idle pairs{', TLS' if secure else ''}")
    costs = {
        name: idle_bytes(server, secure, connections) / 1024
        for name, server in servers.items()
        if name != DIRECT
    }
    goals = [] if secure else [Goal(who=name, most=IDLE_KIB) for name in (FULL, BARE)]
    title = f"gateway, an idle pair{', TLS' if secure else ''}"
    lines = list(compared(title, "KiB", costs, [FULL, BARE], goals))
    for name, kib in costs.items():
        print(f"  {name:<15}{kib:>8.1f} KiB per pair")
    for line in lines:
        print(f"  {line}")
    return lines


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", action="append", help="only rows with this text; may be repeated")
    parser.add_argument("--relay", dest="relays", choices=RELAYS, action="append", help="only this relay")
    parser.add_argument("--tls", action="store_true", help="only with TLS")
    parser.add_argument("--plain", action="store_true", help="only without TLS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one window")
    parser.add_argument("--idle", type=int, default=2000, help="idle connections; 0 leaves this row out")
    return parser.parse_args(argv)


def measured(arguments: argparse.Namespace) -> Iterator[Comparison]:
    """Measure and print; the lines of the table.

    Raises:
        UnavailableError: There is nothing to compare with.
    """
    program()
    allow_descriptors(2 * (arguments.idle + WARM_UP) + SPARE_DESCRIPTORS)
    relay_core, load_core = cores()
    chosen = [row for row in ROWS if any(text in row.title for text in arguments.row or [""])]
    names = (DIRECT, *(name for name in RELAYS if name in (arguments.relays or RELAYS)))
    for secure in (False, True):
        if (secure and arguments.plain) or (not secure and arguments.tls):
            continue
        with relays(names, secure, relay_core, load_core) as servers:
            for row in chosen:
                yield from report(row, run(row, servers, secure, arguments), secure)
            if arguments.idle:
                yield from idle(servers, secure, arguments.idle)


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table."""
    yield from measured(arguments_of(["--rounds", str(rounds)]))


def main() -> int:
    """Measure and print. Returns 1 if a goal is missed."""
    arguments = arguments_of(sys.argv[1:])
    print(head("gateway"), file=sys.stderr)
    try:
        lines = list(measured(arguments))
    except UnavailableError as reason:
        skip("gateway", reason)
        return 0
    return 1 if any(line.is_open for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
