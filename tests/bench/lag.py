"""The delay of a push from its client through the log to a collector, at a steady rate.

``odradek serve`` with odradek-otlp, both with default settings, many clients, and an HTTP endpoint that looks
for the time in each push. Usage, from the folder above: ``python -m bench.lag [--rate 1000] [--clients 200]
[--seconds 20]``
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path

from aiohttp import web
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics

from bench.harness import head
from bench.payloads import PAYLOADS
from bench.wire import Wire
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.hosts import serving

SENT = re.compile(rb"sent\.(\d+)")
PATIENCE_S = 30.0
WARM_UP_S = 2.0


class Lags:
    """The delays that the endpoint measures."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.accepted = 0
        self.early = 0
        """Refused pushes: a client that was late once is early the next time."""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        now_ns = time.time_ns()
        self.ms += [(now_ns - int(sent)) / 1e6 for sent in SENT.findall(body)]
        return web.Response()


class Client(Wire):
    """One connection with one client instance."""

    async def push_on(self, raw: bytes, interval_s: float, begin_s: float, end_s: float, lags: Lags) -> None:
        """Push at the interval; each push contains its time."""
        told = await self.send(GetTelemetrySubscriptionsRequest())
        due_s = begin_s
        while due_s < end_s:
            await asyncio.sleep(due_s - time.time())
            request = PushTelemetryRequest(
                client_instance_id=told.client_instance_id,
                subscription_id=told.subscription_id,
                metrics=raw + stamp(time.time_ns()),
            )
            answer = await self.send(request)
            lags.accepted += not answer.error_code
            lags.early += answer.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            due_s += interval_s


def stamp(sent_ns: int) -> bytes:
    """A metric with the time of its push; appended to other OTLP it is one more ResourceMetrics."""
    scope = ScopeMetrics(metrics=[Metric(name=f"sent.{sent_ns}")])
    return MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])]).SerializeToString()


async def measure(arguments: argparse.Namespace, folder: Path) -> Lags:
    lags = Lags()
    application = web.Application(client_max_size=64 << 20)
    application.router.add_post("/v1/metrics", lags.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    settings = (
        "subscriptions.all.metrics=*",
        "subscriptions.all.interval.ms=100",
        f"plugins.otlp.endpoint=http://127.0.0.1:{port}",
    )
    with serving(folder, *(part for setting in settings for part in ("--set", setting))) as serve:
        await push(arguments, serve.bootstrap, lags)
        end_s = time.time() + PATIENCE_S
        while len(lags.ms) < lags.accepted and time.time() < end_s:
            await asyncio.sleep(0.1)
    await runner.cleanup()
    return lags


async def push(arguments: argparse.Namespace, bootstrap: str, lags: Lags) -> None:
    """All clients, spread over the interval."""
    port = int(bootstrap.rpartition(":")[2])
    interval_s = arguments.clients / arguments.rate
    begin_s = time.time() + WARM_UP_S
    raw = PAYLOADS[arguments.payload]().raw
    clients = [await Client.open(port, "lag") for _ in range(arguments.clients)]
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            at_s = begin_s + interval_s * number / len(clients)
            group.create_task(client.push_on(raw, interval_s, at_s, begin_s + arguments.seconds, lags))
    for client in clients:
        client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000, help="pushes per second")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--payload", choices=PAYLOADS, default="librd6k")
    arguments = parser.parse_args()
    print(head("lag"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        lags = asyncio.run(measure(arguments, Path(folder)))
    found = sorted(lags.ms)
    rate = lags.accepted / arguments.seconds
    print(
        f"{lags.accepted} pushes accepted ({rate:.0f}/s), {lags.early} came too early, {len(found)} arrived"
    )
    print("ms from the client to the collector")
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)):
        print(f"{name:>6}{found[min(len(found) - 1, int(share * len(found)))]:>10.1f}")


if __name__ == "__main__":
    main()
