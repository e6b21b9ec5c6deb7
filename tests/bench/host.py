"""The whole host in its own process for the benches: one subscription, one receiver, and a jumping clock
unless the real one is requested.

Prints ``ready port=N``; when standard input closes it stops and prints, as JSON, the receiver's counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import odradek_enrich
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import (
    ClientTelemetryPayload,
    ClientTelemetryReceiver,
    PluginConfig,
    RequestContext,
    hookimpl,
)
from odradek.process.garbage import freeze_garbage
from odradek.process.limits import keep_buffers, raise_descriptor_limit, switch_threads_often
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.waiting.clock import SystemClock

SHORTEST_INTERVAL_MS = 100
BATCH = 40
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0",
    "subscriptions.bench.metrics=*",
    f"subscriptions.bench.interval.ms={SHORTEST_INTERVAL_MS}",
)


class JumpingClock:
    """A push interval passes between two readings, so that a closed loop of pushes is never throttled."""

    def __init__(self) -> None:
        self.latest_ms = time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        self.latest_ms += SHORTEST_INTERVAL_MS
        return self.latest_ms

    now_ms = monotonic_ms

    monotonic_ns = staticmethod(time.monotonic_ns)


class Counting:
    """Receives a push and discards it."""

    def __init__(self) -> None:
        self.pushes = 0
        self.bytes = 0

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushes += 1
        self.bytes += len(payload.data)


class Joining(Counting):
    """Merges every 40 pushes into one body, as a forwarder would before it sends them."""

    def __init__(self) -> None:
        super().__init__()
        self.batch: list[bytes] = []
        self.body = b""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushes += 1
        self.bytes += len(payload.data)
        self.batch.append(payload.data)
        if len(self.batch) == BATCH:
            self.body = b"".join(self.batch)
            self.batch.clear()


RECEIVERS = {"noop": Counting, "joining": Joining}


class BenchPlugin:
    """Offers one receiver."""

    def __init__(self, receiver: Counting) -> None:
        self.receiver = receiver

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> BenchPlugin:
        return self

    def client_receiver(self) -> ClientTelemetryReceiver:
        return self.receiver


async def serve(host: Host) -> None:
    """Run until standard input closes."""
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    await host.start()
    freeze_garbage()
    print(f"ready port={host.listeners[0].bound_port}", flush=True)
    await closed.wait()
    await host.stop()


def plugins_of(receiver: Counting, *, enrich: bool) -> HostPluginManager:
    plugins = HostPluginManager()
    plugins.add("bench", BenchPlugin(receiver), "bench", "1")
    if enrich:
        plugins.add("enrich", odradek_enrich, "odradek-enrich", "1")
    return plugins


async def main(arguments: argparse.Namespace, directory: str) -> None:
    receiver = RECEIVERS[arguments.receiver]()
    keep_buffers()
    switch_threads_often()
    raise_descriptor_limit()
    settings = (*SETTINGS, f"telemetry.durability={arguments.durability}")
    config = load_config(None, (*settings, f"data.dir={Path(directory) / 'data'}"))
    clock = JumpingClock() if arguments.clock == "jumping" else SystemClock()
    await serve(Host(config, clock=clock, plugins=plugins_of(receiver, enrich=arguments.enrich)))
    print(json.dumps({"pushes": receiver.pushes, "bytes": receiver.bytes}))


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), required=True)
    parser.add_argument("--receiver", choices=RECEIVERS, required=True)
    parser.add_argument("--clock", choices=("jumping", "real"), default="jumping")
    parser.add_argument("--durability", choices=("memory", "log"), default="memory")
    parser.add_argument("--enrich", action="store_true", help="with the labels of odradek-enrich")
    return parser.parse_args(argv)


if __name__ == "__main__":
    given = arguments_of(sys.argv[1:])
    factory = None
    if given.loop == "uvloop":
        import uvloop

        factory = uvloop.new_event_loop
    with tempfile.TemporaryDirectory() as root, asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(given, root))
