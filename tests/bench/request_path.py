"""CPU time of a small push between the bytes of a socket and the bytes of its answer, without sockets.

All channels of a host are fed in turn, as in a pass of the event loop, and the loop has its turn after each
pass. The cost of kernel and loop, which makes other benches vary, is left out, so small changes of the code
show here. With 16 connections most pushes are answered at once; with 64 most wait for the turn of their
connection; with 5 in flight on each, all do.

Usage, from the folder above: ``python -m bench.request_path [--rounds 15] [--pushes 20000]``
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from itertools import count
from typing import Any, cast

from bench.harness import head, spread
from bench.host import SETTINGS, Counting, JumpingClock, plugins_of
from bench.payloads import PAYLOADS
from bench.wire import frame_of
from odradek.net.channel import Channel
from odradek.net.listener import Listener
from odradek.net.peer import Peer
from odradek.process.garbage import freeze_garbage
from odradek.process.limits import keep_buffers
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.wire.codec import decode
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

LOADS = ((16, 1), (64, 1), (64, 5))
"""Connections, and pushes in flight on each."""
ANSWER_HEAD_BYTES = 9
"""Length, correlation id, and no tags."""
ports = count(1)


class Transport:
    """Takes answers."""

    def __init__(self) -> None:
        self.latest = b""

    def write(self, data: bytes) -> None:
        self.latest = data

    def set_write_buffer_limits(self, high: int) -> None:
        """Never reached."""

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "sockname" else None


async def connect(listener: Listener, depth: int) -> tuple[Channel, bytes]:
    """A channel, and the pushes that its client sends at a time."""
    channel, transport = listener.make_channel(), Transport()
    listener.peers[channel] = Peer("127.0.0.1", next(ports))
    channel.connection_made(cast(asyncio.Transport, transport))
    channel.data_received(frame_of(GetTelemetrySubscriptionsRequest(), 0))
    while not transport.latest:
        await asyncio.sleep(0)
    got = decode(GetTelemetrySubscriptionsResponse, 0, transport.latest, ANSWER_HEAD_BYTES)
    push = PushTelemetryRequest(
        client_instance_id=got.client_instance_id,
        subscription_id=got.subscription_id,
        metrics=PAYLOADS["small"]().wire,
    )
    return channel, frame_of(push, 0) * depth


async def measure(listener: Listener, load: tuple[int, int], rounds: int, pushes: int) -> list[float]:
    """Microseconds of CPU per push in each round."""
    connections, depth = load
    clients = [await connect(listener, depth) for _ in range(connections)]
    passes = max(1, pushes // connections // depth)
    found = []
    for _ in range(rounds + 1):
        began_ns = time.process_time_ns()
        for _ in range(passes):
            for channel, data in clients:
                channel.data_received(data)
            await asyncio.sleep(0)
            while len(listener.turns):
                await asyncio.sleep(0)
        spent_ns = time.process_time_ns() - began_ns
        found.append(spent_ns / 1000 / (passes * connections * depth))
    for channel, _ in clients:
        del listener.peers[channel]  # no quota has counted it
        channel.connection_lost(None)
    return found[1:]  # the first round compiles and specializes


async def run(rounds: int, pushes: int, directory: str) -> None:
    """Print a row for each load.

    Raises:
        SystemExit: The receiver did not get every push.
    """
    receiver = Counting()
    config = load_config(None, (*SETTINGS, f"data.dir={directory}"))
    host = Host(config, clock=JumpingClock(), plugins=plugins_of(receiver, enrich=False))
    await host.start()
    freeze_garbage()
    listener = host.listeners[0]
    print(f"{'connections x in flight':<26}{'CPU µs/push':>22}{'waited':>9}")
    for connections, depth in LOADS:
        received, delayed = receiver.pushes, listener.turns.delayed
        found = await measure(listener, (connections, depth), rounds, pushes)
        sent = max(1, pushes // connections // depth) * connections * depth * (rounds + 1)
        if receiver.pushes - received != sent:
            sys.exit(f"the receiver got {receiver.pushes - received} of {sent} pushes")
        waited = 1.0 if depth > 1 else (listener.turns.delayed - delayed) / sent
        print(f"{f'{connections} x {depth}':<26}{spread(found, 2):>22}{waited:>9.0%}")
    await host.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pushes", type=int, default=20_000, help="of a round")
    given = parser.parse_args()
    print(head("request_path"), file=sys.stderr)
    keep_buffers()
    logging.disable(logging.WARNING)  # the loop never waits for events
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(given.rounds, given.pushes, directory))


if __name__ == "__main__":
    main()
