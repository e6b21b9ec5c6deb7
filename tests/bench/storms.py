"""Ten thousand clients that lose their connections at once, and all come back within five seconds.

Each client connects, sends ApiVersions, logs in if its kind does, asks for its subscriptions, pushes 500
bytes, and keeps its connection. When all have pushed, all connections are closed at once, and the clients
come back with the same instance ids: that is a storm, and ``--storms`` follow each other. With ``--kafka`` an
Apache Kafka node gets the same ones; its receiver drops the pushes, while the host writes them to its log.

Usage, from the folder above: ``python -m bench.storms [--clients 10000] [--over 5] [--storms 2]
[--kind plain|scram|tls|tls-scram] [--one-address] [--kafka] [--kafka-only]``

The host has its default settings, and each client an address of its own. With ``--one-address`` all clients
have one, as those of a NAT, and the host the limits that an engineer would raise for them. The clients are
one program in Go; they wait before they try again as Kafka's Java clients do, and resume no TLS session.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from contrib.fleet.descriptors import allow_descriptors

from bench.comparison import Comparison
from bench.go_programs import built
from bench.harness import (
    HERE,
    UnavailableError,
    cores,
    cpu_ns,
    head,
    pipes,
    processes,
    rss_bytes,
    skip,
    spawn,
)
from bench.payloads import small
from bench.probed_serve import ProbedServe
from bench.secured import (
    KAFKA,
    ODRADEK,
    ONE_ADDRESS,
    PASSWORD,
    PLAIN,
    SASL,
    SASL_TLS,
    TLS,
    USER,
    Secured,
    apache_kafka,
    served,
)
from bench.storm_figures import Figures, Storm, lines
from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.process.freed_memory import LOOK_MS
from odradek.wire.config_resource import ResourceType
from support.certificates import Files

SOURCES: Final = tuple(sorted((HERE / "native" / "storm").iterdir()))
KINDS: Final = {"plain": PLAIN, "scram": SASL, "tls": TLS, "tls-scram": SASL_TLS}
"""The listener of each kind."""
INTERVAL_MS: Final = 1_000
"""Of the subscription: shorter than the time between two storms, so that no client is told to wait."""
PAUSE_S: Final = 2.0
"""Between two storms, and before memory is read for the last time."""
GIVEN_BACK_S: Final = 2 * LOOK_MS / 1000 + PAUSE_S
SAMPLE_S: Final = 0.2
SPARE_DESCRIPTORS: Final = 200


def program() -> Path:
    """The clients.

    Raises:
        UnavailableError: There is no Go.
    """
    return built("storm-bench", SOURCES, "the clients of the storm")


class Memory:
    """The private memory of a server and its children, looked at again and again."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak_bytes = pid, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def now_bytes(self) -> int:
        return sum(rss_bytes(each) for each in processes(self.pid))

    def wait_until_below(self, size: int) -> None:
        """Wait until memory was given back, but not longer than that may take."""
        end_s = time.monotonic() + GIVEN_BACK_S
        while self.now_bytes() > size and time.monotonic() < end_s:
            time.sleep(SAMPLE_S)

    def watch(self) -> None:
        while not self.over.wait(SAMPLE_S):
            self.peak_bytes = max(self.peak_bytes, self.now_bytes())

    def close(self) -> None:
        self.over.set()
        self.thread.join()


def listen_overflows() -> int:
    """How often a queue of new connections was full since the machine started, of all listeners."""
    names, values = (
        line.split()
        for line in Path("/proc/net/netstat").read_text().splitlines()
        if line.startswith("TcpExt:")
    )
    return int(dict(zip(names, values, strict=True))["ListenOverflows"])


def command(options: argparse.Namespace, kind: str, server: Secured, files: Files) -> list[str | Path]:
    """The clients."""
    numbers = (f"127.0.0.1:{server.ports[KINDS[kind]]}", str(options.clients), str(options.over))
    payload = files.folder / "payload"
    payload.write_bytes(small().wire)
    found = [program(), *numbers, payload, "shared" if options.one_address else "own"]
    found += ["-tls", files.ca] if KINDS[kind] in (TLS, SASL_TLS) else []
    return found + (["-scram", f"{USER}:{PASSWORD}"] if KINDS[kind] in (SASL, SASL_TLS) else [])


@contextmanager
def started(
    name: str, folder: Path, core: int | None, one_address: bool
) -> Iterator[tuple[Secured, ProbedServe | None]]:
    """A server, with its user and a subscription, and its process if it is the host's."""
    folder.mkdir()
    with ExitStack() as stack:
        serve = None
        if name == ODRADEK:
            more = ONE_ADDRESS if one_address else ()
            server, serve = stack.enter_context(served(folder, core, ProbedServe, *more))
        else:
            server = stack.enter_context(apache_kafka(folder, core))
        server.prepare(())
        with AdminClient(f"127.0.0.1:{server.ports[PLAIN]}") as admin:
            subscription = ConfigResource(ResourceType.CLIENT_METRICS, "storm")
            changes = [ConfigChange("metrics", ""), ConfigChange("interval.ms", str(INTERVAL_MS))]
            admin.incremental_alter_configs({subscription: changes})
        yield server, serve


def measure(name: str, kind: str, options: argparse.Namespace, folder: Path) -> Figures:
    """Start a server, and let the clients come, and come back.

    Raises:
        UnavailableError: The server or the clients do not run on this machine.
    """
    server_core, load_core = cores()
    program()
    with ExitStack() as stack:
        server, serve = stack.enter_context(started(name, folder, server_core, options.one_address))
        memory = Memory(server.pid)
        stack.callback(memory.close)
        before_bytes = memory.now_bytes()
        load = spawn(command(options, kind, server, Files(folder)), load_core)
        stack.callback(load.wait)
        stack.callback(load.kill)
        storms = [
            storm(load, is_first=not number, server=server, serve=serve, memory=memory)
            for number in range(1 + options.storms)
        ]
        load.kill()
        load.wait()
        time.sleep(PAUSE_S)
        leaving = {} if serve is None else serve.report()
        if serve is not None:
            memory.wait_until_below((before_bytes + memory.peak_bytes) // 2)
        return Figures(
            server=name, kind=kind, count=options.clients, first=storms[0], storms=storms[1:],
            before_bytes=before_bytes, peak_bytes=memory.peak_bytes, left_bytes=memory.now_bytes(),
            leaving=leaving,
        )  # fmt: skip


def storm(
    load: subprocess.Popen[str], *, is_first: bool, server: Secured, serve: ProbedServe | None, memory: Memory
) -> Storm:
    """Let the clients come, or come back, and wait until the server is quiet again."""
    stdin, stdout = pipes(load)
    if serve is not None:
        serve.report()
    cpu, overflows = cpu_ns(server.pid), listen_overflows()
    if not is_first:
        stdin.write("again\n")
        stdin.flush()
    line = stdout.readline()
    if not line:
        raise SystemExit("the clients of the storm ended")
    lost, loop = listen_overflows() - overflows, {} if serve is None else serve.report()
    spent = cpu_ns(server.pid) - cpu
    time.sleep(PAUSE_S)
    if serve is not None:
        serve.report()
    return Storm(
        clients=json.loads(line), cpu_s=spent / 1e9, loop=loop, lost=lost, after_bytes=memory.now_bytes()
    )


def arguments_of(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--over", type=float, default=5.0, help="seconds within which the clients connect")
    parser.add_argument("--storms", type=int, default=2, help="of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one; may be repeated")
    parser.add_argument("--one-address", action="store_true", help="all clients have the same one")
    parser.add_argument("--kafka", action="store_true", help="with an Apache Kafka node")
    parser.add_argument("--kafka-only", action="store_true", help="the node without the host")
    return parser.parse_args(argv)


def servers_of(options: argparse.Namespace) -> list[str]:
    """The servers to measure."""
    own = [] if options.kafka_only else [ODRADEK]
    return [*own, KAFKA] if options.kafka or options.kafka_only else own


def comparisons(rounds: int) -> Iterator[Comparison]:
    """The lines of the table: storms in plaintext beside Apache Kafka, and over TLS without it.

    Raises:
        UnavailableError: The clients do not run on this machine.
    """
    options = arguments_of(["--storms", str(rounds)])
    allow_descriptors(2 * options.clients + SPARE_DESCRIPTORS)
    with tempfile.TemporaryDirectory() as root:
        for kind, peers in (("plain", (KAFKA,)), ("tls", ())):
            ours = measure(ODRADEK, kind, options, Path(root) / kind)
            print(ours, flush=True)
            theirs = []
            for name in peers:
                try:
                    theirs.append(measure(name, kind, options, Path(root) / f"{kind}-peer"))
                    print(theirs[-1], flush=True)
                except UnavailableError as reason:
                    skip(f"storms, {kind}: {name}", reason)
            yield from lines(ours, theirs)


def main() -> None:
    options = arguments_of()
    print(head("storms"), file=sys.stderr)
    allow_descriptors(2 * options.clients + SPARE_DESCRIPTORS)
    complete = True
    with tempfile.TemporaryDirectory() as root:
        for kind in options.kind or KINDS:
            for name in servers_of(options):
                try:
                    figures = measure(name, kind, options, Path(root) / f"{kind}-{name.split()[-1]}")
                except UnavailableError as reason:
                    skip(f"{kind}: {name}", reason)
                    continue
                print(figures, flush=True)
                complete &= name != ODRADEK or figures.is_complete
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
