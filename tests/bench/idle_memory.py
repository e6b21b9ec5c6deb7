"""Memory of an idle connection and of a client instance.

Connections send ApiVersions once and stay; instances are made by GetTelemetrySubscriptions with the nil id,
all on one connection. What counts is the private memory of the server process: sockets live in the kernel and
are the same for everyone.

Usage, from the folder above: ``python -m bench.idle_memory [--connections 5000] [--instances 10000]``
"""

from __future__ import annotations

import argparse
import resource
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.frames import API_VERSIONS_V3, GET_NEW_INSTANCE, ask
from bench.harness import Server, UnavailableError, build, head, rss_bytes, running
from bench.rows import ASYNCIO, C_EPOLL, UVLOOP

GOALS_BYTES = {"idle connection": 3000, "client instance": 1000}
WARM_UP = 200
SPARE_DESCRIPTORS = 200


def command(server: str) -> list[str | Path]:
    if server == C_EPOLL:
        return [build("epoll_server")]
    loop = "uvloop" if server == UVLOOP else "asyncio"
    return [sys.executable, "-m", "bench.host", "--loop", loop, "--receiver", "noop", "--enrich"]


def connect(server: Server, stack: ExitStack) -> socket.socket:
    """A connection that has said its name."""
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
    ask(connection, API_VERSIONS_V3)
    return connection


def measure(server: Server, connections: int, instances: int) -> dict[str, float]:
    """Bytes of private memory per connection and per instance."""
    with ExitStack() as stack:
        for _ in range(WARM_UP):
            ask(connect(server, stack), GET_NEW_INSTANCE)
        before = rss_bytes(server.pid)
        for _ in range(connections):
            last = connect(server, stack)
        connected = rss_bytes(server.pid)
        for _ in range(instances):
            ask(last, GET_NEW_INSTANCE)
        filled = rss_bytes(server.pid)
    return {
        "idle connection": (connected - before) / connections,
        "client instance": (filled - connected) / instances,
    }


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--instances", type=int, default=10_000, help="the host keeps at most 16 384")
    return parser.parse_args(argv)


def main() -> None:
    arguments = arguments_of(sys.argv[1:])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections = min(arguments.connections, hard - WARM_UP - SPARE_DESCRIPTORS)
    print(head("idle memory"), file=sys.stderr)
    for name in (C_EPOLL, UVLOOP, ASYNCIO):
        try:
            with running(command(name)) as server:
                figures = measure(server, connections, arguments.instances)
        except UnavailableError as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr)
            continue
        for what, size in figures.items():
            goal = "" if name == C_EPOLL else f", goal {GOALS_BYTES[what]} B"
            verdict = "" if name == C_EPOLL else "reached: " if size <= GOALS_BYTES[what] else "MISSED: "
            print(f"{verdict}{name}: {size:,.0f} B per {what}{goal}")


if __name__ == "__main__":
    main()
