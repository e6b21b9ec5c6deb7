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
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from aiohttp import web
from contrib.fleet.behavior import Client, mixed
from contrib.fleet.fleet import Fleet
from contrib.fleet.lines import recorded_payload
from contrib.fleet.tally import quantiles

from bench.harness import cpu_ns, head
from bench.lag import Lags, stamp
from odradek.client.address import addresses
from support.gateways import gateway_of
from support.hosts import ServeProcess, serving

MIX = {"java": 60.0, "librdkafka": 30.0, "franz-go": 10.0}
CONNECTIONS = 200
PATIENCE_S = 30.0
Processes = Mapping[str, ServeProcess]
"""The processes of a row by name; the clients push to the first."""


@dataclass(slots=True)
class Found:
    """The figures of a row."""

    title: str
    cpu_us: dict[str, float] = field(default_factory=dict)
    """CPU for each push by process, microseconds."""
    summary: dict[str, Any] = field(default_factory=dict)
    lag_ms: dict[str, float] = field(default_factory=dict)
    """Empty for a row without a destination."""
    arrived: int = 0


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


ROWS: dict[str, tuple[Callable[[ExitStack, Path, int, str], Processes], bool]] = {
    "host": (alone, False),
    "host, OTLP": (otlp, True),
    "host, topic, reader, OTLP": (topic, True),
    "gateway, OTLP": (gateway, True),
}
"""By title: the processes, and whether the pushes arrive at the endpoint."""


@asynccontextmanager
async def endpoint(lags: Lags) -> AsyncIterator[str]:
    """An OTLP endpoint; yields its URL."""
    application = web.Application(client_max_size=64 << 20)
    application.router.add_post("/v1/metrics", lags.take)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def measure(title: str, arguments: argparse.Namespace) -> Found:
    """Put one row under load."""
    processes_of, arrives = ROWS[title]
    found, lags = Found(title), Lags()
    kinds = mixed(MIX, arguments.clients)
    plain = recorded_payload(list(dict.fromkeys(kinds)))

    def stamped(client: Client, now_ms: int) -> bytes:
        return plain(client, now_ms) + stamp(time.time_ns())

    async with endpoint(lags) as url:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            processes = await asyncio.to_thread(processes_of, stack, Path(folder), arguments.interval_ms, url)
            first = next(iter(processes.values()))
            before: dict[str, int] = {}
            after: dict[str, int] = {}

            def mark(place: dict[str, int]) -> Callable[[], None]:
                return lambda: place.update(
                    {name: cpu_ns(each.process.pid) for name, each in processes.items()}
                )

            fleet = Fleet(
                addresses(first.bootstrap),
                kinds,
                CONNECTIONS,
                stamped if arrives else plain,
                settled=True,
                on_begin=mark(before),
                on_end=mark(after),
            )
            await fleet.run(arguments.seconds)
            end_s = time.monotonic() + PATIENCE_S * arrives
            while len(lags.ms) < fleet.tally.accepted and time.monotonic() < end_s:
                await asyncio.sleep(0.1)
            accepted = max(1, fleet.tally.accepted)
            found.cpu_us = {name: (after[name] - before[name]) / 1000 / accepted for name in processes}
            await asyncio.to_thread(stack.close)
    found.summary = fleet.summary()
    found.arrived = len(lags.ms)
    found.lag_ms = quantiles([ms / 1000 for ms in lags.ms])
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
            print(json.dumps(line | found.summary) if arguments.json else report(found), flush=True)


if __name__ == "__main__":
    main()
