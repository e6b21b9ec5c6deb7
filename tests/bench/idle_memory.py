"""Memory of an idle connection and of a client instance.

Connections send ApiVersions once and stay open; GetTelemetrySubscriptions with the nil id creates all
instances on one connection. Only the private memory of the server process counts: sockets are in the kernel
and are the same for every server. The exit status is 1 if a goal is missed, or if steps of growth contradict
each other, so that it was not measured.

Usage, from the folder above: ``python -m bench.idle_memory [--connections 10000] [--instances 16000]``
"""

from __future__ import annotations

import argparse
import math
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from contrib.fleet.descriptors import allow_descriptors

from bench.frames import API_VERSIONS_V3, GET_NEW_INSTANCE, ask
from bench.harness import Server, UnavailableError, build, head, rss_bytes, running, verdict
from bench.rows import ASYNCIO, C_EPOLL, UVLOOP

GOALS_BYTES = {"idle connection": 3000, "client instance": 1000}
GOAL_TOGETHER_BYTES = 100 << 20
"""For 10 000 connections and 16 000 instances, in addition to the server's memory before the first of
them.
"""
STEPS = 8
LARGEST_RATIO = 3
"""Of the largest step to the smallest: memory grows in chunks, and tables by doubling."""
WARM_UP = 200
SPARE_DESCRIPTORS = 200
PATIENCE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The private bytes of a server while something was added in steps of the same size."""

    count: int
    """Of all steps together."""
    sizes: Sequence[int]
    """Before the first step and after each."""

    @property
    def added(self) -> int:
        return self.sizes[-1] - self.sizes[0]

    @property
    def each(self) -> float:
        """Bytes of one thing; NaN if the steps contradict each other, because something else was freed."""
        steps = [after - before for before, after in pairwise(self.sizes)]
        agree = min(steps) > 0 and max(steps) <= LARGEST_RATIO * min(steps)
        return self.added / self.count if agree else math.nan


def command(server: str) -> list[str | Path]:
    if server == C_EPOLL:
        return [build("epoll_server")]
    loop = "uvloop" if server == UVLOOP else "asyncio"
    return [
        sys.executable,
        "-m",
        "bench.host",
        "--loop",
        loop,
        "--receiver",
        "noop",
        "--enrich",
        "--clock",
        "real",
    ]


def connect(server: Server, stack: ExitStack) -> socket.socket:
    """A connection that has sent ApiVersions."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
    ask(connection, API_VERSIONS_V3)
    return connection


def grown(server: Server, count: int, add: Callable[[], object]) -> Growth:
    """Add things, and look at the memory after each step."""
    sizes = [rss_bytes(server.pid)]
    for _ in range(STEPS):
        for _ in range(count // STEPS):
            add()
        sizes.append(rss_bytes(server.pid))
    return Growth(count=count // STEPS * STEPS, sizes=sizes)


def measure(server: Server, connections: int, instances: int) -> tuple[Growth, Growth]:
    """Create the instances, then open the connections."""
    with ExitStack() as stack:
        for _ in range(WARM_UP):
            ask(connect(server, stack), GET_NEW_INSTANCE)
        busy = connect(server, stack)
        filled = grown(server, instances, lambda: ask(busy, GET_NEW_INSTANCE))
        opened: list[socket.socket] = []
        connected = grown(server, connections, lambda: opened.append(connect(server, stack)))
        for each in (busy, *opened):
            ask(each, API_VERSIONS_V3)  # a server that has closed it holds no memory for it
        return connected, filled


def report(name: str, connected: Growth, filled: Growth) -> bool:
    """Print bytes of each connection and each instance, and in total. Returns whether all goals are
    reached.
    """
    figures = [("B per idle connection", connected.each, GOALS_BYTES["idle connection"])]
    if name != C_EPOLL:  # it has no instances
        figures.append(("B per client instance", filled.each, GOALS_BYTES["client instance"]))
    added = connected.added + filled.added
    held = f"{connected.count:,} connections and {filled.count:,} instances"
    figures.append((f"B more with {held}", added, GOAL_TOGETHER_BYTES))
    for what, size, goal in figures:
        line = f"{name}: {size:,.0f} {what}"
        print(line if name == C_EPOLL else f"{verdict(size, goal)}: {line}, goal {goal:,} at most")
    return name == C_EPOLL or all(size <= goal for _, size, goal in figures)


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=16_000, help="the host keeps at most 16 384")
    return parser.parse_args(argv)


def main() -> None:
    signal.alarm(PATIENCE_S)
    arguments = arguments_of(sys.argv[1:])
    beside = WARM_UP + SPARE_DESCRIPTORS
    connections = min(arguments.connections, allow_descriptors(arguments.connections + beside) - beside)
    print(head("idle memory"), file=sys.stderr)
    reached = True
    for name in (C_EPOLL, UVLOOP, ASYNCIO):
        try:
            with running(command(name)) as server:
                connected, filled = measure(server, connections, arguments.instances)
        except UnavailableError as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr)
            continue
        reached &= report(name, connected, filled)
    if not reached:
        sys.exit(1)


if __name__ == "__main__":
    main()
