"""The cost of observing a client, for each request and for each window.

Each row is the CPU time of a request and its response in a pair of a gateway without sockets: observed with
what it reads, observed without that, not observed, and the difference between the last two.

Usage, from the folder above: ``python -m bench.observation [--rounds 100000]``
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from bench.harness import head
from odradek.gateway.observation.client_report import report
from odradek.gateway.observation.names import wanted_names
from odradek.gateway.observation.observation import unnamed
from odradek.gateway.observation.settings import Observe
from odradek.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch_of
from support.gateway_pair import Through, request, response
from support.observed import Stage
from unit.gateway.observation.test_observed_requests import produce, produced

BATCH: Final = batch_of(b"v" * 1_000)
REPEATS: Final = 7


class Kind(Enum):
    """What a gateway wants to know of a client."""

    FOLLOWED = auto()
    OBSERVED = auto()
    BARE = auto()


class Nowhere:
    """An end of a pair that drops what it gets."""

    def write(self, data: bytes | memoryview) -> None: ...
    def writelines(self, parts: list[bytes | memoryview]) -> None: ...
    def hold(self, reason: int) -> None: ...
    def release(self, reason: int) -> None: ...
    def holds(self, held_bytes: int, missing_bytes: int) -> None: ...


def fetched(partitions: int) -> FetchResponse:
    """A response with one batch for each partition."""
    topic = FetchableTopicResponse(partitions=[PartitionData(records=BATCH)] * partitions)
    return FetchResponse(responses=[topic])


def fetching(partitions: int) -> FetchRequest:
    """A request that names partitions."""
    rows = [FetchPartition(partition=index, fetch_offset=index) for index in range(partitions)]
    return FetchRequest(topics=[FetchTopic(topic="orders", topic_id=b"1" * 16, partitions=rows)])


ROWS: Final[dict[str, tuple[Any, Any, int, int]]] = {
    "Produce v7, 1 batch of 1 kB": (produce(BATCH), produced(0), 7, 1),
    "Produce v9, 1 batch of 1 kB": (produce(BATCH), produced(0), 9, 1),
    "Produce v13, 1 batch of 1 kB": (produce(BATCH), produced(0), 13, 1),
    "the same, 2 in a chunk": (produce(BATCH), produced(0), 13, 2),
    "the same, 5 in a chunk": (produce(BATCH), produced(0), 13, 5),
    "Produce v7, 10 batches": (produce(*[BATCH] * 10), produced(*[0] * 10), 7, 1),
    "Produce v13, 10 batches": (produce(*[BATCH] * 10), produced(*[0] * 10), 13, 1),
    "Produce v13, 100 batches": (produce(*[BATCH] * 100), produced(*[0] * 100), 13, 1),
    "Fetch v12, empty": (FetchRequest(), FetchResponse(), 12, 1),
    "Fetch v18, 1 partition of 1 kB": (FetchRequest(), fetched(1), 18, 1),
    "Fetch v18, 10 partitions of 1 kB": (FetchRequest(), fetched(10), 18, 1),
    "Fetch v18, names 1 of 1 partition": (fetching(1), fetched(1), 18, 1),
    "Fetch v18, names 10 of 10 partitions": (fetching(10), fetched(10), 18, 1),
    "Fetch v12, names 10 of 10 partitions": (fetching(10), fetched(10), 12, 1),
    "Fetch v18, names 100, answers 1": (fetching(100), fetched(1), 18, 1),
    "Metadata v7": (MetadataRequest(), MetadataResponse(), 7, 1),
    "OffsetCommit v8": (OffsetCommitRequest(), OffsetCommitResponse(), 8, 1),
}
"""Request, response, version, and how many requests arrive together, as their responses do."""
VARIED: Final = {
    f"Produce v{version}, varied, {most} partition{'s' * (most > 1)} at most": (version, most)
    for version in (9, 13)
    for most in (1, 8)
}
"""Version and most partitions of requests as applications send them: topics, counts and lengths differ."""
DIFFERENT: Final = 40
"""How many different requests a varied row has."""


def varied(version: int, most: int) -> list[tuple[bytes, bytes]]:
    """Requests for one or two topics, whose batches have log-normal lengths, and their responses."""
    chosen = random.Random(1)
    pairs = []
    for number in range(DIFFERENT):
        topics = []
        for _ in range(chosen.choice((1, 1, 2))):
            batches = [
                batch_of(*[b"v" * int(chosen.lognormvariate(5, 1))] * chosen.randint(1, 20))
                for _ in range(chosen.randint(1, most))
            ]
            partitions = [PartitionProduceData(index=index, records=one) for index, one in enumerate(batches)]
            topics.append(TopicProduceData(name="t" * chosen.randint(5, 40), partition_data=partitions))
        errors = [0] * sum(len(topic.partition_data) for topic in topics)
        asked = ProduceRequest(acks=1, topic_data=topics)
        pairs.append((request(asked, version, number), response(produced(*errors), version, number)))
    return pairs


def microseconds(run: Callable[[], object], times: int) -> float:
    """The least CPU time of a run, of some."""
    found = []
    for _ in range(REPEATS):
        started_ns = time.thread_time_ns()
        for _ in range(times):
            run()
        found.append(time.thread_time_ns() - started_ns)
    return min(found) / times / 1_000


def exchange(kind: Kind, frames: list[tuple[bytes, bytes]]) -> Callable[[], None]:
    """A function that passes requests and their responses through a pair, one after the other."""
    stage = Stage(Observe.ALL, follows_fetches=kind is Kind.FOLLOWED)
    observer = None if kind is Kind.BARE else stage.observation
    through = Through(observer=observer, monotonic_ns=time.monotonic_ns)
    through.pair.state.client = through.pair.state.upstream = Nowhere()

    def run() -> None:
        for sent, received in frames:
            through.pair.from_client(sent)
            through.pair.from_upstream(received)
        assert not through.failures

    return run


def row(name: str, frames: list[tuple[bytes, bytes]], requests: int, rounds: int) -> None:
    """Measure and print a row of so many requests."""
    size_bytes = sum(len(sent) + len(received) for sent, received in frames)
    times = max(rounds * 1_000 // max(size_bytes, 1_000) // REPEATS, 1)
    followed, full, bare = (microseconds(exchange(each, frames), times) / requests for each in Kind)
    print(f"  {name:<42}{followed:>10.2f}{full:>10.2f}{bare:>8.2f}{full - bare:>12.2f}")


def window_us() -> float:
    """The CPU time of the report about a window of three nodes, with all metrics."""
    stage = Stage()
    for node_id in (1, 2, 3):
        pair = stage.pair(node_id=node_id)
        for asked, answered, version, _ in ROWS.values():
            pair.exchange(asked, answered, version)
    (watched,) = stage.observation.clients.values()
    wanted, clock = wanted_names(["*"]), stage.clock
    return microseconds(
        lambda: report(watched.account, wanted, clock.now_ms(), clock.monotonic_ms(), unnamed), 1_000
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100_000, help="requests of each row")
    rounds = parser.parse_args().rounds
    print(head("observation"), file=sys.stderr)
    print(f"  {'µs per request':<42}{'followed':>10}{'observed':>10}{'bare':>8}{'difference':>12}")
    for name, (asked, answered, version, together) in ROWS.items():
        sent = b"".join(request(asked, version, number) for number in range(together))
        received = b"".join(response(answered, version, number) for number in range(together))
        row(name, [(sent, received)], together, rounds)
    for name, (version, most) in VARIED.items():
        row(name, varied(version, most), DIFFERENT, rounds)
    print(f"  {'a window of 3 nodes, all metrics':<42}{window_us():>10.2f}")


if __name__ == "__main__":
    main()
