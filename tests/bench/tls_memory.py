"""Memory of idle connections in plaintext and over TLS: after an answer, after a push, after a produce.

Usage, from the folder above: ``python -m bench.tls_memory [--kafka] [--connections 1000]``

The figure is the growth of the server's private memory for each connection. The heap of a JVM grows for other
reasons too, so Apache Kafka has a second figure: what a full collection leaves in the heap.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from ssl import SSLContext
from typing import Final

from contrib.fleet.descriptors import allow_descriptors

from bench.frames import ask
from bench.harness import head, rss_bytes
from bench.secured import KAFKA, PLAIN, TLS, Secured, connected, contexts, servers
from bench.tls import TITLES, check_produced, produce, push, topic_of

PRODUCED_BYTES: Final = 500_000
WARM_UP: Final = 100
SETTLED_S: Final = 0.5
SPARE_DESCRIPTORS: Final = 500
HEAP_USED: Final = re.compile(r"heap\s+total \d+K, used (\d+)K")


def collected_heap_bytes(pid: int) -> int:
    """The heap of a JVM after a full collection."""
    subprocess.run(["jcmd", str(pid), "GC.run"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run(["jcmd", str(pid), "GC.heap_info"], check=True, capture_output=True, text=True)
    found = HEAP_USED.search(done.stdout)
    assert found is not None, done.stdout
    return int(found[1]) * 1024


def memory(server: Secured) -> tuple[int, int]:
    """Private memory, and the heap of a JVM or 0."""
    time.sleep(SETTLED_S)
    heap = collected_heap_bytes(server.pid) if server.name == KAFKA else 0
    return rss_bytes(server.pid), heap


def growth(
    server: Secured, port: int, context: SSLContext | None, count: int
) -> Iterator[tuple[str, float, float]]:
    """Bytes for each connection, of private memory and of heap, by what the connections have done."""
    requests = {"idle": None, "after a push": push(), f"after {PRODUCED_BYTES} B": produce(PRODUCED_BYTES)}
    with ExitStack() as stack:
        for request in requests.values():
            first = stack.enter_context(connected(port, context))
            if request is not None:
                ask(first, request)
        for _ in range(WARM_UP):
            stack.enter_context(connected(port, context))
        before = memory(server)
        opened = [stack.enter_context(connected(port, context)) for _ in range(count)]
        for title, request in requests.items():
            if request is not None:
                for each in opened:
                    answer = ask(each, request)
                if title != "after a push":
                    check_produced(answer)
            now = memory(server)
            yield title, (now[0] - before[0]) / count, (now[1] - before[1]) / count


def main(options: argparse.Namespace) -> None:
    """Measure and print."""
    print(head("memory of TLS"), file=sys.stderr)
    allow_descriptors(options.connections + WARM_UP + SPARE_DESCRIPTORS)
    print(f"{'kB of each connection':60}{'private memory':>16}{'heap':>10}")
    with (
        tempfile.TemporaryDirectory() as root,
        servers(Path(root), None, kafka=options.kafka, topics=[topic_of(PRODUCED_BYTES)]) as running,
    ):
        clients = contexts(Path(root))
        for server in running:
            for name in (PLAIN, TLS):
                for title, private, heap in growth(
                    server, server.ports[name], clients[name], options.connections
                ):
                    row = f"{server.name}, {TITLES[name]}, {title}"
                    heap_text = f"{heap / 1000:10.1f}" if server.name == KAFKA else ""
                    print(f"{row:60}{private / 1000:16.1f}{heap_text}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--kafka", action="store_true", help="with an Apache Kafka node")
    main(parser.parse_args())
