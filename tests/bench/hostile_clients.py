"""Hostile clients of the hostile bench: each repeats one behavior until the time is over.

Usage: ``python -m bench.hostile_clients PORT SECONDS COUNT``. Prints, as JSON, how often each behavior ran
and how it ended, and how many requests were answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import zstandard

from bench.payloads import ZSTD
from bench.wire import LENGTH, Wire, frame_of
from odradek.wire.compression import Codec
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from random_messages import MessageMaker, declared_versions

AGAIN_S = 0.05
PATIENCE_S = 20.0
BALLAST = "ballast"
BALLAST_BATCHES, BALLAST_BATCH_BYTES = 60, 900_000
BY_NAME = 12
INIT_PRODUCER_ID_VERSION = 4
FRAME_BYTES = 90 << 20
PIPELINED = 200
SPARED = {"IncrementalAlterConfigsRequest", "AlterConfigsRequest", "AlterClientQuotasRequest"}
"""Random requests of these may by chance throttle everybody, as an administrator may."""

Behavior = Callable[[Wire], Awaitable[object]]
numbers = itertools.count()
counts: Counter[str] = Counter()


async def exchange(wire: Wire, request: Any, version: int | None = None) -> Any:
    """Send a request and wait for its response, but not for ever."""
    async with asyncio.timeout(PATIENCE_S):
        answer = await wire.send(request, version)
    counts["answered"] += 1
    return answer


async def half_open(wire: Wire) -> None:
    """Announce 90 MB and send 10 kB of them."""
    wire.writer.write(LENGTH.pack(FRAME_BYTES) + bytes(10_000))
    await asyncio.sleep(5)


async def large_frame(wire: Wire) -> None:
    """Send most of a frame of 90 MB."""
    wire.writer.write(LENGTH.pack(FRAME_BYTES) + b"\0\x03\0\x0c\0\0\0\1\xff\xff\0")
    piece = bytes(1 << 16)
    for _ in range(FRAME_BYTES // len(piece) - 1):
        wire.writer.write(piece)
        async with asyncio.timeout(PATIENCE_S):
            await wire.writer.drain()
        await asyncio.sleep(0.002)


async def dribble(wire: Wire) -> None:
    """Send a request byte by byte."""
    for byte in frame_of(ApiVersionsRequest(), 0):
        wire.writer.write(bytes((byte,)))
        await asyncio.sleep(0.02)
    await asyncio.wait_for(wire.answer(), PATIENCE_S)


async def idle(wire: Wire) -> None:
    await asyncio.sleep(10)


async def leave_at_once(wire: Wire) -> None:
    """Close with a reset in the middle of a frame."""
    wire.writer.write(LENGTH.pack(100) + bytes(50))
    sock = wire.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def garbage(wire: Wire) -> None:
    wire.writer.write(os.urandom(2_000))
    await asyncio.wait_for(wire.reader.read(1), PATIENCE_S)


async def negative_length(wire: Wire) -> None:
    wire.writer.write(LENGTH.pack(-5) + bytes(5))
    await asyncio.wait_for(wire.reader.read(1), PATIENCE_S)


def random_frame(source: random.Random) -> bytes:
    while True:
        cls, version = source.choice(REQUESTS)
        if cls.__name__ not in SPARED:
            return frame_of(MessageMaker(source).message(cls, version), version, "random")


async def random_requests(wire: Wire) -> None:
    """Send well-formed requests of every API with random contents."""
    for _ in range(20):
        wire.writer.write(random_frame(random.Random(next(numbers))))
        await asyncio.wait_for(wire.answer(), 2)
        counts["answered"] += 1


async def mutated_requests(wire: Wire) -> None:
    """Send requests with random bytes changed, the length kept."""
    source = random.Random(next(numbers))
    for _ in range(20):
        frame = bytearray(random_frame(source))
        for _ in range(3):
            frame[source.randrange(4, len(frame))] = source.randrange(256)
        if bytes(frame[4:6]) in (b"\0\x21", b"\0\x2c", b"\0\x31"):  # see SPARED
            continue
        wire.writer.write(frame)
        await asyncio.wait_for(wire.answer(), 2)
        counts["answered"] += 1


async def pipeline(wire: Wire) -> None:
    """Send many requests at once and read the answers."""
    wire.writer.write(frame_of(MetadataRequest(topics=None), BY_NAME) * PIPELINED)
    for _ in range(PIPELINED):
        await asyncio.wait_for(wire.answer(), PATIENCE_S)
        counts["answered"] += 1


async def never_read(wire: Wire) -> None:
    """Send requests and never read an answer."""
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    frame = frame_of(ApiVersionsRequest(), 0) * PIPELINED
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(5):
            while True:
                wire.writer.write(frame)
                await wire.writer.drain()


async def push_flood(wire: Wire) -> None:
    """Push far more often than the interval allows."""
    told = await exchange(wire, GetTelemetrySubscriptionsRequest())
    push = PushTelemetryRequest(
        client_instance_id=told.client_instance_id, subscription_id=told.subscription_id, metrics=b"\x0a\0"
    )
    for _ in range(50):
        await exchange(wire, push)


async def push_bomb(wire: Wire) -> None:
    """Push a megabyte that opens to a gigabyte."""
    told = await exchange(wire, GetTelemetrySubscriptionsRequest())
    push = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        compression_type=ZSTD,
        metrics=BOMB,
    )
    await exchange(wire, push)


def produce(topic: str, *batches: bytes) -> ProduceRequest:
    parts = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    data = TopicProduceData(name=topic, partition_data=parts)
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])


async def two_million_records(wire: Wire) -> None:
    """Produce two million records in a few kilobytes."""
    await exchange(wire, produce(BALLAST, MILLIONS), BY_NAME)


async def junk_for_telemetry(wire: Wire) -> None:
    """Produce junk to the telemetry topic."""
    await exchange(wire, produce("__client_telemetry", JUNK), BY_NAME)


def fetch(min_bytes: int, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    topic = FetchTopic(topic=BALLAST, partitions=[partition])
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=1 << 30, topics=[topic])


async def wait_and_leave(wire: Wire) -> None:
    """Fetch with an enormous minimum, and leave."""
    wire.writer.write(frame_of(fetch((1 << 31) - 1, 60_000), BY_NAME))
    await asyncio.sleep(1)


async def fetch_unread(wire: Wire) -> None:
    """Fetch 50 MB and never read them."""
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    wire.writer.write(frame_of(fetch(1, 0), BY_NAME))
    await asyncio.sleep(5)


async def many_resources(wire: Wire) -> None:
    """Describe the same broker 20 000 times."""
    await exchange(wire, DESCRIBE)


async def many_quotas(wire: Wire) -> None:
    """Set the quotas of 6 500 client ids, as many as one request holds."""
    await exchange(wire, QUOTAS)


async def many_names(wire: Wire) -> None:
    """Ask for 3 000 topics that do not exist."""
    number = next(numbers)
    topics = [MetadataRequestTopic(name=f"dotted.{number}.{index}") for index in range(3_000)]
    await exchange(wire, MetadataRequest(topics=topics, allow_auto_topic_creation=False))


async def many_partitions(wire: Wire) -> None:
    """Create topics with 1 000 partitions in all and delete them."""
    names = [f"hostile-{next(numbers)}" for _ in range(10)]
    topics = [CreatableTopic(name=name, num_partitions=100, replication_factor=1) for name in names]
    await exchange(wire, CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    states = [DeleteTopicState(name=name) for name in names]
    await exchange(wire, DeleteTopicsRequest(topics=states, timeout_ms=10_000))


async def long_pattern(wire: Wire) -> None:
    """Validate a subscription whose pattern has megabytes."""
    config = AlterableConfig(name="match", config_operation=ConfigOperation.SET, value=PATTERN)
    resource = AlterConfigsResource(
        resource_type=ResourceType.CLIENT_METRICS, resource_name="hostile", configs=[config]
    )
    await exchange(wire, IncrementalAlterConfigsRequest(resources=[resource], validate_only=True))


async def join_groups(wire: Wire) -> None:
    """Join one new group after the other."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(1_000))
    for _ in range(50):
        request = JoinGroupRequest(
            group_id=f"hostile-{next(numbers)}",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=1_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        await exchange(wire, request)


async def transactional_ids(wire: Wire) -> None:
    """Use long transactional ids, each once."""
    for _ in range(20):
        name = f"{next(numbers)}-".ljust(20_000, "t")
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        await exchange(wire, request, INIT_PRODUCER_ID_VERSION)


async def long_client_ids(wire: Wire) -> None:
    """Use a client id of 32 kB, each once."""
    for _ in range(20):
        wire.client_id = f"{next(numbers)}-".ljust(32_000, "c")
        await exchange(wire, GetTelemetrySubscriptionsRequest())


async def offsets_by_time(wire: Wire) -> None:
    """Look up one timestamp many times."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=time.time_ns() // 1_000_000)
    topic = ListOffsetsTopic(name=BALLAST, partitions=[partition] * 1_000)
    await exchange(wire, ListOffsetsRequest(topics=[topic]))


BEHAVIORS: dict[str, Behavior] = {
    behavior.__name__: behavior
    for behavior in (
        half_open, large_frame, dribble, idle, leave_at_once, garbage, negative_length, random_requests,
        mutated_requests, pipeline, never_read, push_flood, push_bomb, two_million_records,
        junk_for_telemetry, wait_and_leave, fetch_unread, many_resources, many_quotas, many_names,
        many_partitions, long_pattern, join_groups, transactional_ids, long_client_ids, offsets_by_time,
    )
}  # fmt: skip
REQUESTS = [row for row in declared_versions() if row[0].__name__.endswith("Request")]
BOMB = zstandard.ZstdCompressor(level=1).compress(bytes(1 << 30))[: 1 << 20]
PATTERN = "client_id=" + "(a|b)*c?" * 300_000
NOW_MS = time.time_ns() // 1_000_000
MILLIONS = build_batch([Record(None, None, NOW_MS + 7_200_000)] * 2_000_000, codec=Codec.ZSTD)
JUNK = build_batch([Record(None, b"junk", NOW_MS)] * 10_000, codec=Codec.ZSTD)
DESCRIBE = DescribeConfigsRequest(
    resources=[DescribeConfigsResource(resource_type=ResourceType.BROKER, resource_name="1")] * 20_000
)
QUOTAS = AlterClientQuotasRequest(
    entries=[
        RequestEntryData(
            entity=[EntityData(entity_type="client-id", entity_name=f"hostile-{index}")],
            ops=[OpData(key="producer_byte_rate", value=1e9)],
        )
        for index in range(6_500)
    ]
)


async def make_ballast(port: int) -> None:
    """Fill the topic from which the hostile clients fetch."""
    wire = await Wire.open(port)
    topic = CreatableTopic(name=BALLAST, num_partitions=1, replication_factor=1)
    await wire.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    batch = build_batch([Record(None, bytes(BALLAST_BATCH_BYTES), NOW_MS)])
    for _ in range(BALLAST_BATCHES):
        await wire.send(produce(BALLAST, batch), BY_NAME)
    wire.close()


async def behave(name: str, behavior: Behavior, port: int, until_s: float, found: Counter[str]) -> None:
    """Repeat one behavior, each time on a new connection."""
    while time.monotonic() < until_s:
        try:
            wire = await Wire.open(port, f"hostile-{name}")
        except OSError:
            found["not connected"] += 1
            await asyncio.sleep(AGAIN_S)
            continue
        try:
            await behavior(wire)
            found[name] += 1
        except (OSError, EOFError, TimeoutError) as error:
            found[f"{name}: {type(error).__name__}"] += 1
        finally:
            wire.close()
        await asyncio.sleep(AGAIN_S)


async def main(port: int, seconds: float, count: int) -> None:
    await make_ballast(port)
    until_s = time.monotonic() + seconds
    found: Counter[str] = Counter()
    rows = itertools.islice(itertools.cycle(BEHAVIORS.items()), count)
    await asyncio.gather(*(behave(name, behavior, port, until_s, found) for name, behavior in rows))
    print(json.dumps({"found": found, "answered": counts["answered"]}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
