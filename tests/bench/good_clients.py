"""Well-behaved clients of the hostile bench: they push, produce and consume at a steady rate.

Usage: ``python -m bench.good_clients PORT``. Prints ``ready``. Each line on standard input is answered by the
latencies since the previous one, as JSON; the clients stop when standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from bench.payloads import PAYLOADS
from bench.wire import Wire
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch

PUSHERS = 20
PUSH_INTERVAL_S = 0.25
PRODUCERS = 4
PRODUCE_INTERVAL_S = 0.05
TOPIC = "good"
BY_NAME = 12
"""The last version of Produce and Fetch that names topics."""
RECORD_BYTES = 1_000
AGAIN_S = 0.1

Turn = Callable[[Wire], Awaitable[int]]


class Latencies:
    """Milliseconds of each exchange by kind, and what went wrong."""

    def __init__(self) -> None:
        self.ms: dict[str, list[float]] = {}
        self.errors: dict[str, int] = {}

    def count(self, what: str) -> None:
        self.errors[what] = self.errors.get(what, 0) + 1

    def take(self) -> dict[str, object]:
        """Everything since the previous call."""
        taken = {"ms": self.ms, "errors": self.errors}
        self.ms, self.errors = {}, {}
        return taken


async def steadily(kind: str, port: int, interval_s: float, begin: Turn, found: Latencies) -> None:
    """Repeat one exchange, an interval after each answer; open the connection again when it breaks."""
    wire: Wire | None = None
    while True:
        await asyncio.sleep(interval_s)
        started_s = time.perf_counter()
        try:
            if wire is None:
                wire = await Wire.open(port, f"good-{kind}")
            code = await begin(wire)
        except (OSError, EOFError) as error:
            found.count(f"{kind}: {type(error).__name__}")
            wire = None
            continue
        if code:
            found.count(f"{kind}: {ErrorCode(code).name}")
        else:
            found.ms.setdefault(kind, []).append((time.perf_counter() - started_s) * 1000)


class Pusher:
    """One client instance."""

    def __init__(self) -> None:
        self.subscribed: tuple[Wire, bytes, int] | None = None
        self.payload = PAYLOADS["librd6k"]()

    async def push(self, wire: Wire) -> int:
        """Push once; on a new connection, ask for the subscription first."""
        if self.subscribed is None or self.subscribed[0] is not wire:
            told = await wire.send(GetTelemetrySubscriptionsRequest())
            self.subscribed = wire, told.client_instance_id, told.subscription_id
            return int(told.error_code)
        _, instance_id, subscription_id = self.subscribed
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=subscription_id,
            compression_type=self.payload.codec,
            metrics=self.payload.wire,
        )
        return int((await wire.send(request)).error_code)


async def produce(wire: Wire) -> int:
    """Produce one record with acks=all."""
    batch = build_batch([Record(b"key", bytes(RECORD_BYTES), time.time_ns() // 1_000_000)])
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    answer = await wire.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), BY_NAME)
    return int(answer.responses[0].partition_responses[0].error_code)


class Reader:
    """Reads the topic of the producers from the end on."""

    def __init__(self) -> None:
        self.offset = 0

    async def fetch(self, wire: Wire) -> int:
        """Fetch once without waiting."""
        partition = FetchPartition(partition=0, fetch_offset=self.offset, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=TOPIC, partitions=[partition])
        answer = await wire.send(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic]), BY_NAME)
        data = answer.responses[0].partitions[0]
        self.offset = max(self.offset, data.high_watermark)
        return int(data.error_code)


async def create_topic(port: int) -> None:
    wire = await Wire.open(port)
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    await wire.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    wire.close()


async def main(port: int) -> None:
    found = Latencies()
    await create_topic(port)
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(steadily("push", port, PUSH_INTERVAL_S, Pusher().push, found))
            for _ in range(PUSHERS)
        ]
        for _ in range(PRODUCERS):
            running.append(group.create_task(steadily("produce", port, PRODUCE_INTERVAL_S, produce, found)))
            fetch = Reader().fetch
            running.append(group.create_task(steadily("fetch", port, PRODUCE_INTERVAL_S, fetch, found)))
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(found.take()), flush=True)
        for task in running:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
