"""CPU time of keeping a push in the log, compared with the same push with ``telemetry.durability = memory``.

Frames pass dispatcher, manager, payload, group commit and log in this process, without sockets; the two
alternate. Usage, from the folder above: ``python -m bench.spool [--clients 64] [--rounds 30]``
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.harness import head
from bench.host import Counting, JumpingClock, plugins_of
from bench.payloads import PAYLOADS, Payload
from odradek.plugin import ConnectionContext, RequestContext
from odradek.process.garbage import freeze_garbage
from odradek.process.limits import keep_buffers
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.testing import request_context
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0",
    "payload.workers=0",
    "subscriptions.bench.metrics=*",
    "subscriptions.bench.interval.ms=100",
)
TURNS = 10
"""Pushes of every client in one round."""


class Clients:
    """Client instances of one host, each with its next push as a frame."""

    def __init__(self, host: Host, payload: Payload, count: int) -> None:
        self.host = host
        self.dispatcher = host.dispatcher
        self.connections = [connection(number) for number in range(count)]
        self.frames = [self.frame(number, payload) for number in range(count)]

    def frame(self, number: int, payload: Payload) -> bytes:
        """The push of one client."""
        instance_id = (number + 2).to_bytes(16)
        context = RequestContext(self.connections[number], 71, 0, 0, "bench", 0)
        instance = self.host.telemetry.client_instances.instance(instance_id, context, 1)
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            compression_type=payload.codec,
            metrics=payload.wire,
        )
        header = RequestHeader(api_key=72, api_version=0, correlation_id=number, client_id="bench")
        return request_header(header, flexible_request_header(PushTelemetryRequest, 0)) + encode(request, 0)

    def turn(self, answered: Callable[[bytes], None]) -> None:
        """Send one push of each, and do the work at the end of a loop turn."""
        for frame, of in zip(self.frames, self.connections, strict=True):
            answer = self.dispatcher.answer(frame, 0, of)
            if isinstance(answer, Deferred):
                answer.when_done(answered)
            else:
                assert isinstance(answer, bytes)
                answered(answer)
        self.host.timer.run_due(self.host.clock.monotonic_ms())


def connection(number: int) -> ConnectionContext:
    return request_context(
        connection_id=f"127.0.0.1:9092-127.0.0.1:{number}-{number}", client_port=number
    ).connection


def cpu_us(clients: Clients) -> float:
    """Microseconds of one push, all threads of the process."""
    answers = 0

    def answered(frame: bytes) -> None:
        nonlocal answers
        answers += 1

    before_s = time.process_time()
    for _ in range(TURNS):
        clients.turn(answered)
    taken_s = time.process_time() - before_s
    assert answers == TURNS * len(clients.frames)
    assert set(clients.host.telemetry.accounts.rejected) == set()
    return taken_s / answers * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64, help="pushes in one turn of the event loop")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--payload", choices=PAYLOADS, action="append")
    arguments = parser.parse_args()
    keep_buffers()
    print(head("spool"), file=sys.stderr)
    asyncio.run(measure(arguments))


async def measure(arguments: argparse.Namespace) -> None:
    """Print a table per payload."""
    print(f"{'payload':<10}{'memory':>10}{'log':>10}{'more':>10}   µs of CPU per push, best round")
    for name in arguments.payload or PAYLOADS:
        found: dict[str, list[float]] = {"memory": [], "log": []}
        with tempfile.TemporaryDirectory() as folder:
            clients = {kind: clients_of(kind, Path(folder), name, arguments.clients) for kind in found}
            freeze_garbage()
            for _ in range(arguments.rounds + 1):
                for kind in found:
                    found[kind].append(cpu_us(clients[kind]))
            for each in clients.values():
                await each.host.stop()
        memory, log = (min(found[kind]) for kind in ("memory", "log"))
        print(f"{name:<10}{memory:>10.2f}{log:>10.2f}{log - memory:>10.2f}")


def clients_of(durability: str, folder: Path, payload: str, count: int) -> Clients:
    """A host that does not listen, and its clients."""
    settings = (
        *SETTINGS,
        f"data.dir={folder / durability}",
        f"telemetry.durability={durability}",
        "telemetry.linger.ms=0",
    )
    plugins = plugins_of(Counting(), enrich=payload != "small")
    host = Host(load_config(None, settings), clock=JumpingClock(), plugins=plugins)
    host.pushes.file_subscriptions.start(host.config.subscriptions)
    return Clients(host, PAYLOADS[payload](), count)


if __name__ == "__main__":
    main()
