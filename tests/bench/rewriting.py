"""The cost of rewriting a response in the gateway: CPU time of a whole response, and of its longest chunk.

A chunk is what one turn of the loop gets from a socket, at most 256 KiB; a walk holds the loop no longer than
for one chunk. The goals are those of the design, with some reserve for a shared machine.

Usage, from the folder above: ``python -m bench.rewriting [--rounds 7]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

from bench.harness import head
from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.wire.codec import writer
from odradek.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

CHUNK_BYTES = 1 << 18
TURN_GOAL_US = 5_000
"""No chunk holds the loop longer."""
HOST = "broker-{}.cluster.internal"
MOVED = PartitionData(error_code=6, current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=3))
ENDPOINTS = [NodeEndpoint(node_id=node, host=HOST.format(node), port=9092) for node in range(3)]


class Fixed:
    """Addresses that cost nothing."""

    def advertised(self, node_id: int) -> tuple[str, int] | None:
        return "gateway.example.com", 9193

    def learned(self, node_id: int, host: str, port: int) -> None:
        pass


def metadata(brokers: int, partitions: int) -> MetadataResponse:
    """A cluster with topics of ten partitions and three replicas."""
    nodes = [
        MetadataResponseBroker(node_id=node, host=HOST.format(node), port=9092) for node in range(brokers)
    ]
    row = [
        MetadataResponsePartition(partition_index=number, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2])
        for number in range(10)
    ]
    topics = [
        MetadataResponseTopic(name=f"topic-{number}", topic_id=number.to_bytes(16), partitions=row)
        for number in range(partitions // 10)
    ]
    return MetadataResponse(brokers=nodes, topics=topics)


def fetch(partition: PartitionData, count: int, endpoints: Any = ()) -> FetchResponse:
    """Topics of up to a hundred partitions each."""
    sizes = [min(100, count - start) for start in range(0, count, 100)]
    topics = [FetchableTopicResponse(topic_id=bytes(16), partitions=[partition] * size) for size in sizes]
    return FetchResponse(responses=topics, node_endpoints=list(endpoints))


def produce(count: int) -> ProduceResponse:
    return ProduceResponse(
        responses=[TopicProduceResponse(partition_responses=[PartitionProduceResponse()] * count)]
    )


def rows() -> dict[str, tuple[Any, int, float | None]]:
    """Name, response and version of each row, and the goal in microseconds."""
    aborted = PartitionData(aborted_transactions=[AbortedTransaction(producer_id=1)] * 100)
    keys = [
        Coordinator(key=f"group-{number}", node_id=number % 3, host=HOST.format(1), port=9092)
        for number in range(1000)
    ]
    return {
        "metadata, 3 brokers, 10 partitions": (metadata(3, 10), 13, 15),
        "metadata, 12 brokers, 10000 partitions": (metadata(12, 10_000), 13, 100),
        "metadata, 30 brokers, 50000 partitions": (metadata(30, 50_000), 13, 1000),
        "find coordinator, 1 key": (FindCoordinatorResponse(coordinators=keys[:1]), 6, 20),
        "find coordinator, 1000 keys": (FindCoordinatorResponse(coordinators=keys), 6, 5000),
        "produce, 1 partition": (produce(1), 13, 10),
        "produce, 1000 partitions": (produce(1000), 13, 1000),
        "fetch, empty": (FetchResponse(), 18, 10),
        "fetch, 1 partition of 1 MB": (fetch(PartitionData(records=bytes(1_000_000)), 1), 18, 30),
        "fetch, 1000 partitions of 1 kB": (fetch(PartitionData(records=bytes(1000)), 1000), 18, 1500),
        "fetch, 10000 empty partitions": (fetch(PartitionData(), 10_000), 18, 8000),
        "fetch, 50000 empty partitions": (fetch(PartitionData(), 50_000), 18, 40_000),
        "fetch, 10000 moved partitions": (fetch(MOVED, 10_000, ENDPOINTS), 18, None),
        "fetch, 100 aborted transactions each": (fetch(aborted, 1000), 18, None),
    }


def cpu_us(frame: memoryview, api_key: int, version: int) -> tuple[float, float]:
    """CPU microseconds of a response and of its longest chunk."""
    chunks = [frame[start : start + CHUNK_BYTES] for start in range(0, len(frame), CHUNK_BYTES)]
    addresses, limits = Fixed(), HoldLimits()
    begin = last = time.thread_time_ns()
    longest = 0
    rewriter = rewriter_for(api_key, version, len(frame), addresses, limits)
    assert rewriter is not None
    for chunk in chunks:
        rewriter.feed(chunk)
        now = time.thread_time_ns()
        longest, last = max(longest, now - last), now
    return (last - begin) / 1000, longest / 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(head("rewriting"), file=sys.stderr)
    print(f"  {'response':<40}{'kB':>8}{'µs':>10}{'goal':>8}{'longest chunk µs':>18}")
    missed = 0
    for name, (message, version, goal) in rows().items():
        header = bytes(4) + b"\0"
        frame = memoryview(header + bytes(writer(type(message), version)(message)))
        repeats = max(3, min(2000, 20_000_000 // len(frame)) // 10)
        costs = []
        for _ in range(rounds):
            each = [cpu_us(frame, message.API_KEY, version) for _ in range(repeats)]
            costs.append(tuple(statistics.median(column) for column in zip(*each, strict=True)))
        total, longest = min(cost[0] for cost in costs), min(cost[1] for cost in costs)
        late = longest > TURN_GOAL_US or (goal is not None and total > goal)
        missed += late
        print(
            f"  {name:<40}{len(frame) / 1000:>8.1f}{total:>10.1f}{goal or '':>8}{longest:>18.1f}"
            f"{'  MISSED' if late else ''}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
