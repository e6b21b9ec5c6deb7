"""CPU per push of each part of the way, and the delay from the client to the destination, with a fleet.

The load is ``contrib/fleet``: recorded payloads of a mix of clients, one push of each per interval. The
figure is the CPU time of a process with all its threads, divided by the pushes that were accepted in the same
time. The cost of a forwarder is the difference between two rows. Delays are those of pushes that contain
their time, which an OTLP endpoint in this process reads.

Usage, from the folder above: ``python -m bench.parts [--row TEXT] [--clients 1000] [--seconds 10] [--json]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from contrib.fleet.behavior import mixed
from contrib.fleet.fleet import Fleet
from contrib.fleet.lines import recorded_payload
from contrib.fleet.tally import quantiles

from bench.harness import cpu_ns, head
from odradek.client.address import addresses
from support.gateways import gateway_of
from support.hosts import ServeProcess, serving

MIX = {"java": 60.0, "librdkafka": 30.0, "franz-go": 10.0}
CONNECTIONS = 200
PATIENCE_S = 10.0
WARM_UP_CLIENTS, WARM_UP_S = 50, 2.0
TIME = re.compile(rb"\x19(?=(.{7}[\x18-\x1f]))", re.DOTALL)
"""The field time_unix_nano of a data point, and other bytes: only the times of the run count."""
Processes = Mapping[str, ServeProcess]
"""The processes of a row by name; the clients push to the first."""


@dataclass(slots=True)
class Found:
    """The figures of a row."""

    title: str
    cpu_us: dict[str, float] = field(default_factory=dict)
    """CPU for each push by process, microseconds."""
    summary: dict[str, Any] = field(default_factory=dict)
    log_bytes: float = 0.0
    """For each push in the log of the first process."""
    lag_ms: dict[str, float] = field(default_factory=dict)
    """Empty for a row without a destination."""
    arrived: int = 0


@dataclass(slots=True)
class Arrivals:
    """The delays that the endpoint measures; each push has a time of its own."""

    begun_ns: int
    ms: dict[int, float] = field(default_factory=dict)
    """By the time of the push."""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        now_ns = time.time_ns()
        for found in set(TIME.findall(body)):
            sent_ns = int.from_bytes(found, "little")
            if self.begun_ns < sent_ns <= now_ns:
                self.ms.setdefault(sent_ns, (now_ns - sent_ns) / 1e6)
        return web.Response()

    async def wait(self, count: int) -> None:
        """Wait for a number of pushes; not for long if they do not come."""
        end_s = time.monotonic() + PATIENCE_S
        while len(self.ms) < count and time.monotonic() < end_s:
            await asyncio.sleep(0.1)


def options(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


def host(stack: ExitStack, folder: Path, interval_ms: int, *settings: str) -> ServeProcess:
    """``odradek serve`` with its default durability and a subscription for every client."""
    everything = ("subscriptions.all.metrics=*", f"subscriptions.all.interval.ms={interval_ms}")
    return stack.enter_context(serving(folder, *options(*everything, *settings)))


def alone(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    return {"host": host(stack, folder, interval_ms)}


def otlp(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    return {"host": host(stack, folder, interval_ms, f"plugins.otlp.endpoint={url}")}


def topic(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    """A host exports to a cluster, of which another one reads and forwards over OTLP."""
    cluster = host(stack, folder / "cluster", interval_ms, "group.initial.rebalance.delay.ms=0")
    exporting = (f"plugins.kafka.bootstrap.servers={cluster.bootstrap}", "plugins.kafka.topic.partitions=2")
    edge = host(stack, folder / "edge", interval_ms, *exporting)
    reading = (f"plugins.kafka.source.bootstrap.servers={cluster.bootstrap}", f"plugins.otlp.endpoint={url}")
    return {"host": edge, "cluster": cluster, "reader": host(stack, folder / "reader", interval_ms, *reading)}


def gateway(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    """A gateway in front of a host answers telemetry and forwards over OTLP."""
    cluster = host(stack, folder / "cluster", interval_ms)
    process = gateway_of(cluster.bootstrap, folder / "gateway", f"plugins.otlp.endpoint={url}")
    return {"gateway": stack.enter_context(process), "cluster": cluster}


class ForwardProcess(ServeProcess):
    """``odradek forward`` as a user starts it."""

    command = "forward"
    ready_start = "odradek ready group="


def forwarded(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    """A process beside a host forwards the host's topic over OTLP."""
    read = host(stack, folder, interval_ms, "group.initial.rebalance.delay.ms=0")
    return {"host": read, "forward": forwarder(stack, read, url)}


def straight(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    """A host writes to the topic of a cluster before it answers; a process beside that topic forwards it."""
    cluster = host(stack, folder / "cluster", interval_ms, "group.initial.rebalance.delay.ms=0")
    writing = (
        "telemetry.durability=kafka",
        f"plugins.kafka.telemetry.bootstrap.servers={cluster.bootstrap}",
    )
    edge = host(stack, folder / "edge", interval_ms, *writing)
    return {"host": edge, "cluster": cluster, "forward": forwarder(stack, cluster, url)}


def forwarder(stack: ExitStack, cluster: ServeProcess, url: str) -> ServeProcess:
    """``odradek forward`` over OTLP from the telemetry topic of a cluster."""
    settings = options(f"plugins.otlp.endpoint={url}")
    process = ForwardProcess("--bootstrap-server", cluster.bootstrap, *settings)
    stack.callback(process.terminate)
    return process


class ConsoleProcess(ServeProcess):
    """``odradek console`` as a user starts it."""

    program = ("-m",)
    command = "odradek_console"
    ready_start = "odradek console ready "


def watched(stack: ExitStack, folder: Path, interval_ms: int, url: str) -> Processes:
    """A console reads the topic of a host."""
    read = host(stack, folder, interval_ms)
    console = ConsoleProcess("--bootstrap-server", read.bootstrap)
    stack.callback(console.terminate)
    return {"host": read, "console": console}


ROWS: dict[str, tuple[Callable[[ExitStack, Path, int, str], Processes], bool]] = {
    "host": (alone, False),
    "host, console": (watched, False),
    "host, OTLP": (otlp, True),
    "host, topic, reader, OTLP": (topic, True),
    "gateway, OTLP": (gateway, True),
    "host, forward, OTLP": (forwarded, True),
    "host to a cluster, forward, OTLP": (straight, True),
}
"""By title: the processes, and whether the pushes arrive at the endpoint."""


@asynccontextmanager
async def endpoint(arrivals: Arrivals) -> AsyncIterator[str]:
    """An OTLP endpoint; yields its URL."""
    application = web.Application(client_max_size=64 << 20)
    application.router.add_post("/v1/metrics", arrivals.take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def size_of_log(folder: Path) -> int:
    """Bytes of the telemetry topic of the process that clients push to."""
    places = (folder / name for name in ("edge", "gateway", "."))
    first = next(place for place in places if place.exists())
    return sum(each.stat().st_size for each in first.glob("logs/__client_telemetry-*/*.log"))


async def measure(title: str, arguments: argparse.Namespace) -> Found:
    """Put one row under load, after a small one that opens all connections between the processes."""
    processes_of, arrives = ROWS[title]
    found, arrivals = Found(title), Arrivals(time.time_ns())
    kinds = mixed(MIX, arguments.clients)
    payload = recorded_payload(list(dict.fromkeys(kinds)))
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    async with endpoint(arrivals) as url:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            interval_ms = arguments.interval_ms
            processes = await asyncio.to_thread(processes_of, stack, Path(folder), interval_ms, url)
            brokers = addresses(next(iter(processes.values())).bootstrap)

            def mark(place: dict[str, int]) -> Callable[[], None]:
                return lambda: place.update(
                    {name: cpu_ns(each.process.pid) for name, each in processes.items()}
                )

            few = Fleet(brokers, kinds[:WARM_UP_CLIENTS], CONNECTIONS, payload, settled=True)
            await few.run(WARM_UP_S)
            await arrivals.wait(few.tally.accepted * arrives)
            arrivals.ms.clear()
            fleet = Fleet(
                brokers,
                kinds,
                CONNECTIONS,
                payload,
                settled=True,
                on_begin=mark(before),
                on_end=mark(after),
            )
            await fleet.run(arguments.seconds)
            await arrivals.wait(fleet.tally.accepted * arrives)
            await asyncio.to_thread(stack.close)
            log_bytes = size_of_log(Path(folder))
    found.log_bytes = log_bytes / (few.tally.accepted + fleet.tally.accepted)
    accepted = max(1, fleet.tally.accepted)
    found.cpu_us = {name: (after[name] - before[name]) / 1000 / accepted for name in processes}
    found.summary, found.arrived = fleet.summary(), len(arrivals.ms)
    found.lag_ms = quantiles([ms / 1000 for ms in arrivals.ms.values()])
    return found


def report(found: Found) -> str:
    lines = [
        f"{found.title}: {found.summary['pushes_per_s']:.0f} pushes/s, {found.summary['accepted']} accepted"
    ]
    for name, cpu_us in found.cpu_us.items():
        lines.append(f"  {name:<10}{cpu_us:>8.0f} µs of CPU a push{1e6 / cpu_us:>9.0f} a core-second")
    for title, values in (("answer", found.summary["latency_ms"]), ("arrival", found.lag_ms)):
        if values:
            lines.append(
                f"  {title:<10}" + "  ".join(f"{name} {ms:.1f}" for name, ms in values.items()) + " ms"
            )
    if found.lag_ms:
        lines.append(f"  {found.arrived} arrived")
    if found.log_bytes:
        lines.append(f"  {found.log_bytes:.0f} bytes of the log a push")
    late = found.summary["late"]
    lines.append(
        f"  the generator used {found.summary['generator_core']:.2f} of a core, {late['pushes']} late"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--row", default="", help="rows with this text only")
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--interval-ms", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    print(head("parts"), file=sys.stderr)
    for title in ROWS:
        if arguments.row in title:
            found = asyncio.run(measure(title, arguments))
            line = {"row": title, "cpu_us": found.cpu_us, "lag_ms": found.lag_ms, "arrived": found.arrived}
            line["log_bytes"] = found.log_bytes
            print(json.dumps(line | found.summary) if arguments.json else report(found), flush=True)


if __name__ == "__main__":
    main()
