"""The latency of a push on a quiet host, and while many connections pipeline requests as fast as they can.

``odradek serve`` on a core of its own, with its default settings. Usage, from the folder above:
``python -m bench.fair_turns [--pipelining 200] [--victims 10] [--seconds 8]``
"""

from __future__ import annotations

import argparse
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.harness import head
from bench.payloads import PAYLOADS
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.hosts import serving
from support.wire_client import WireClient

INTERVAL_MS = 100
WARM_UP_S = 2.0
CHUNK_FRAMES = 2_000
PATIENCE_S = 60.0
SETTINGS = ("subscriptions.all.metrics=*", f"subscriptions.all.interval.ms={INTERVAL_MS}")


def push_until(client: WireClient, end_s: float, found_ms: list[float]) -> None:
    """Push at the interval and measure each push."""
    told = client.subscriptions()
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        metrics=PAYLOADS["small"]().wire,
    )
    while time.monotonic() < end_s:
        begin_s = time.monotonic()
        code = client.send(request).error_code
        assert code == 0, code
        found_ms.append((time.monotonic() - begin_s) * 1000)
        time.sleep(INTERVAL_MS / 1000)  # from the answer on: a push after a slow one must not be too early


def measure(address: tuple[str, int], victims: int, seconds: float) -> list[float]:
    """The latencies of all victims' pushes, in milliseconds, in ascending order."""
    found_ms: list[float] = []
    clients = [WireClient(address, f"victim-{number}", PATIENCE_S) for number in range(victims)]
    end_s = time.monotonic() + seconds
    threads = [threading.Thread(target=push_until, args=(client, end_s, found_ms)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.socket.close()
    return sorted(found_ms)


def pipeline(address: tuple[str, int], connections: int) -> None:
    """Send requests on many connections as fast as the host takes them, until the process is killed."""
    selector = selectors.DefaultSelector()
    for number in range(connections):
        client = WireClient(address, f"pipelining-{number}")
        client.socket.setblocking(False)
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        data = memoryview(client.frame(request, 3) * CHUNK_FRAMES)
        selector.register(client.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, [data, 0])
    answers = bytearray(1 << 18)
    while True:
        for key, events in selector.select():
            connection, state = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            if events & selectors.EVENT_READ and not connection.recv_into(answers):
                sys.exit("the host closed a connection")
            if events & selectors.EVENT_WRITE:
                data, sent = state
                state[1] = (sent + connection.send(data[sent:])) % len(data)


def row(name: str, found_ms: list[float]) -> str:
    at = {share: found_ms[min(int(len(found_ms) * share), len(found_ms) - 1)] for share in (0.5, 0.99)}
    return f"{name:<24}{len(found_ms):>7}{at[0.5]:>9.1f}{at[0.99]:>9.1f}{found_ms[-1]:>9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipelining", type=int, default=200, help="connections that pipeline")
    parser.add_argument("--victims", type=int, default=10, help="clients that push")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attack:
        host, _, port = arguments.attack.rpartition(":")
        pipeline((host, int(port)), arguments.pipelining)
    print(head("fair_turns"), file=sys.stderr)
    options = tuple(part for setting in SETTINGS for part in ("--set", setting))
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), *options) as serve:
        host, _, port = serve.bootstrap.rpartition(":")
        address = (host, int(port))
        print(f"{'ms':<24}{'pushes':>7}{'p50':>9}{'p99':>9}{'max':>9}")
        quiet = measure(address, arguments.victims, arguments.seconds)
        print(row("quiet", quiet))
        attack = [sys.executable, "-m", "bench.fair_turns", "--attack", serve.bootstrap]
        attacker = subprocess.Popen([*attack, "--pipelining", str(arguments.pipelining)])
        try:
            time.sleep(WARM_UP_S)
            busy = measure(address, arguments.victims, arguments.seconds)
        finally:
            attacker.kill()
            attacker.wait()
        print(row(f"{arguments.pipelining} pipelining", busy))
        print(f"median: {statistics.median(busy) / statistics.median(quiet):.2f} times quiet")


if __name__ == "__main__":
    main()
