"""Memory of an idle connection and of a client instance.

Connections send ApiVersions once and stay open; GetTelemetrySubscriptions with the nil id creates all
instances on one connection. Only the private memory of the server process counts: sockets are in the kernel
and are the same for every server. The exit status is 1 if a goal is missed, or if steps of growth contradict
each other, so that it was not measured.

Usage, from the folder above: ``python -m bench.idle_memory [--connections 10000] [--instances 16000]``
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from contrib.fleet.descriptors import allow_descriptors

from bench.comparison import Comparison, Goal, compared
from bench.frames import API_VERSIONS_V3, GET_NEW_INSTANCE, ask
from bench.growth import Growth, grown
from bench.harness import Server, UnavailableError, build, head, running, skip
from bench.servers import ASYNCIO, C_EPOLL, OURS, UVLOOP

CONNECTION, INSTANCE = "idle connection", "client instance"
GOALS_BYTES = {CONNECTION: 3000, INSTANCE: 1000}
GOAL_TOGETHER_BYTES = 100 << 20
"""For 10 000 connections and 16 000 instances, in addition to the server's memory before the first of
them.
"""
CONNECTIONS, INSTANCES = 10_000, 16_000
WARM_UP = 200
SPARE_DESCRIPTORS = 200
PATIENCE_S = 300


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


def costs_of(server: str, connections: int, instances: int) -> dict[str, float]:
    """Bytes of each connection, of each instance, and in total.

    Raises:
        UnavailableError: The server does not run on this machine.
    """
    with running(command(server)) as process:
        connected, filled = measure(process, connections, instances)
    costs = {CONNECTION: connected.each, INSTANCE: filled.each}
    return costs | {
        f"{connected.count:,} connections and {filled.count:,} instances": connected.added + filled.added
    }


def comparisons(connections: int = CONNECTIONS, instances: int = INSTANCES) -> Iterator[Comparison]:
    """The lines of the table."""
    beside = WARM_UP + SPARE_DESCRIPTORS
    connections = min(connections, allow_descriptors(connections + beside) - beside)
    found: dict[str, dict[str, float]] = {}
    for name in (UVLOOP, ASYNCIO, C_EPOLL):
        try:
            costs = costs_of(name, connections, instances)
        except UnavailableError as reason:
            skip(name, reason)
            continue
        for what, cost in costs.items():
            if name != C_EPOLL or what == CONNECTION:  # it has no instances
                found.setdefault(what, {})[name] = cost
    for what, costs in found.items():
        most = GOALS_BYTES.get(what, GOAL_TOGETHER_BYTES)
        goals = [Goal(who=name, most=most) for name in OURS]
        yield from compared(f"memory, {what}", "B", costs, OURS, goals)


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--instances", type=int, default=INSTANCES, help="the host keeps at most 16 384")
    return parser.parse_args(argv)


def main() -> None:
    signal.alarm(PATIENCE_S)
    arguments = arguments_of(sys.argv[1:])
    print(head("idle memory"), file=sys.stderr)
    lines = list(comparisons(arguments.connections, arguments.instances))
    for line in lines:
        print(line)
    if any(line.is_open for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
