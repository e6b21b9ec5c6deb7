"""Memory of an idle connection and of a client instance.

Connections send ApiVersions once and stay open; GetTelemetrySubscriptions with the nil id creates all
instances on one connection. Only the private memory of the server process counts: sockets are in the kernel
and are the same for every server.

Usage, from the folder above: ``python -m bench.idle_memory [--connections 10000] [--instances 16000]``
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from contrib.fleet.descriptors import allow_descriptors

from bench.frames import API_VERSIONS_V3, GET_NEW_INSTANCE, ask
from bench.harness import Server, UnavailableError, build, head, rss_bytes, running
from bench.rows import ASYNCIO, C_EPOLL, UVLOOP

GOALS_BYTES = {"idle connection": 3000, "client instance": 1000}
GOAL_TOGETHER_BYTES = 100 << 20
"""For 10 000 connections and 16 000 instances, in addition to the server's memory before the first of
them.
"""
WARM_UP = 200
SPARE_DESCRIPTORS = 200
PATIENCE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Private bytes of a server: before, with all connections, and with all instances too."""

    before: int
    connected: int
    filled: int


def command(server: str) -> list[str | Path]:
    if server == C_EPOLL:
        return [build("epoll_server")]
    loop = "uvloop" if server == UVLOOP else "asyncio"
    return [sys.executable, "-m", "bench.host", "--loop", loop, "--receiver", "noop", "--enrich"]


def connect(server: Server, stack: ExitStack) -> socket.socket:
    """A connection that has sent ApiVersions."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
    ask(connection, API_VERSIONS_V3)
    return connection


def measure(server: Server, connections: int, instances: int) -> Memory:
    """Open the connections, then create the instances."""
    with ExitStack() as stack:
        for _ in range(WARM_UP):
            ask(connect(server, stack), GET_NEW_INSTANCE)
        before = rss_bytes(server.pid)
        for _ in range(connections):
            last = connect(server, stack)
        connected = rss_bytes(server.pid)
        for _ in range(instances):
            ask(last, GET_NEW_INSTANCE)
        return Memory(before=before, connected=connected, filled=rss_bytes(server.pid))


def report(name: str, memory: Memory, connections: int, instances: int) -> None:
    """Bytes of each connection and each instance, and in total."""
    figures = {
        "idle connection": (memory.connected - memory.before) / connections,
        "client instance": (memory.filled - memory.connected) / instances,
    }
    for what, size in figures.items():
        goal = GOALS_BYTES[what]
        beside = "" if name == C_EPOLL else f", goal {goal:,} B"
        print(f"{verdict(name, size, goal)}{name}: {size:,.0f} B per {what}{beside}")
    added = memory.filled - memory.before
    held = f"{connections:,} connections and {instances:,} instances"
    sizes = f"{memory.filled / 1e6:,.1f} MB with {held}, {added / 1e6:,.1f} MB more than before"
    print(f"{verdict(name, added, GOAL_TOGETHER_BYTES)}{name}: {sizes}")


def verdict(name: str, size: float, goal: float) -> str:
    """Empty for the C server, which has no goals."""
    if name == C_EPOLL:
        return ""
    return "reached: " if size <= goal else "MISSED: "


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
    for name in (C_EPOLL, UVLOOP, ASYNCIO):
        try:
            with running(command(name)) as server:
                memory = measure(server, connections, arguments.instances)
        except UnavailableError as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr)
            continue
        report(name, memory, connections, arguments.instances)


if __name__ == "__main__":
    main()
