"""Clients of two kinds that push at a steady rate, and start and stop as applications do."""

from __future__ import annotations

import asyncio
import itertools
import random
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import zstandard
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench.payloads import ZSTD, java25k, librd6k, metrics
from odradek.client.connection import answer_type
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

LENGTH = struct.Struct(">i")
LEAST_CLIENTS = 24
PUSHES_PER_CLIENT_S = 5
SUBSCRIPTION_MS = 100
"""The smallest interval that Kafka allows; an earlier push is refused."""
LEAST_PAUSE_S = 0.12
KINDS = ("java", "java", "java", "librdkafka", "librdkafka")
LARGE_EVERY = 50
"""One client in this many has more metrics than the host decompresses inline."""
LARGE_METRICS = 1_000
POOL = 16
RENEW_S = 0.25
AGAIN_S = 0.5


class Payloads:
    """Payloads of each kind, each renewed with the current time and other values every few seconds."""

    def __init__(self) -> None:
        large = MetricsData()
        for metric in metrics(LARGE_METRICS, seed=7):
            large.resource_metrics.add().scope_metrics.add().metrics.append(metric)
        self.source = random.Random(1)
        self.layouts = {
            "java": MetricsData.FromString(java25k().raw),
            "librdkafka": MetricsData.FromString(librd6k().raw),
            "large": large,
        }
        self.pools = {kind: [self.renewed(kind)] * POOL for kind in self.layouts}

    def renewed(self, kind: str) -> bytes:
        """An encoded push with the current time."""
        data, now_ns = self.layouts[kind], time.time_ns()
        for group in data.resource_metrics:
            for metric in group.scope_metrics[0].metrics:
                for point in (*metric.gauge.data_points, *metric.sum.data_points):
                    point.time_unix_nano, point.start_time_unix_nano = now_ns, now_ns - 10**9
                    point.as_double = self.source.random()
        return zstandard.compress(data.SerializeToString())

    async def renew(self) -> None:
        """The payloads in turn, endlessly."""
        for number in itertools.cycle(range(POOL)):
            for kind, pool in self.pools.items():
                pool[number] = self.renewed(kind)
                await asyncio.sleep(RENEW_S)

    def any(self, kind: str) -> bytes:
        return self.source.choice(self.pools[kind])


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self.reader, self.writer, self.client_id = reader, writer, client_id

    async def send(self, request: Any) -> Any:
        """The response."""
        version = request.VERSIONS.last
        header = RequestHeader(request.API_KEY, version, 1, self.client_id)
        frame = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        self.writer.write(LENGTH.pack(len(frame)) + frame)
        (length,) = LENGTH.unpack(await self.reader.readexactly(LENGTH.size))
        answer = await self.reader.readexactly(length)
        _, start = read_response_header(answer, 0, flexible_response_header(request, version))
        return decode(answer_type(type(request)), version, answer, start)


@dataclass(eq=False)
class SteadyPushes:
    """All clients together; counters run from the start."""

    bootstrap: str
    rate: int
    """Pushes per second, if the host keeps up: a client waits for its answer."""
    life_s: float
    """After this time a client instance sends its terminating push, and another replaces it."""
    sent: int = 0
    accepted: int = 0
    instances: int = 0
    broken: int = 0
    """Connections that ended before an answer."""
    refused: Counter[int] = field(default_factory=Counter)
    """By error code."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    payloads: Payloads = field(default_factory=Payloads)

    @property
    def clients(self) -> int:
        return max(LEAST_CLIENTS, self.rate // PUSHES_PER_CLIENT_S)

    async def run(self) -> None:
        """Push until told to stop; every push has been answered then."""
        renewing = asyncio.create_task(self.payloads.renew())
        try:
            await asyncio.gather(*(self.live(number) for number in range(self.clients)))
        finally:
            renewing.cancel()

    async def live(self, number: int) -> None:
        """One place among the clients. First lives differ in length, so that not all end at once."""
        share = (number + 1) / self.clients
        life_s = self.life_s * share
        await asyncio.sleep(share)
        while not self.stopping.is_set():
            try:
                await self.instance(number, time.monotonic() + life_s)
                life_s = self.life_s
            except (OSError, asyncio.IncompleteReadError):
                self.broken += 1
                await asyncio.sleep(AGAIN_S)

    async def instance(self, number: int, end_s: float) -> None:
        """A client from its first request to its terminating push."""
        name = KINDS[number % len(KINDS)]
        kind = "large" if number % LARGE_EVERY == 0 else name
        host, _, port = self.bootstrap.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            client = Client(reader, writer, f"{name}-{number}")
            await client.send(ApiVersionsRequest(client_software_name=name, client_software_version="1.0"))
            told = await client.send(GetTelemetrySubscriptionsRequest())
            self.instances += 1
            due_s, is_last = time.monotonic(), False
            while not is_last:
                is_last = due_s > end_s or self.stopping.is_set()
                await self.push(client, told, self.payloads.any(kind), is_last=is_last)
                due_s = max(due_s + self.clients / self.rate, time.monotonic() + LEAST_PAUSE_S)
                await asyncio.sleep(due_s - time.monotonic())
        finally:
            writer.close()

    async def push(self, client: Client, told: Any, metrics: bytes, *, is_last: bool) -> None:
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            terminating=is_last,
            compression_type=ZSTD,
            metrics=metrics,
        )
        self.sent += 1
        code = (await client.send(request)).error_code
        if code:
            self.refused[code] += 1
        else:
            self.accepted += 1
