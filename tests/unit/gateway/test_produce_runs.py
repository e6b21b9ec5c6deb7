"""Produce requests that arrive together are counted together, whatever stands among them."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.gateway.observation.names import OWN
from odradek.gateway.pair_failure import Cause
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch_of
from support.gateway_pair import Through, framed, request
from support.observed import Stage, totals

VERSION = 12
BATCH = batch_of(b"v" * 200, b"v")


def produce(
    number: int, topic: str = "orders", partitions: int = 1, batches: bytes = BATCH, **more: Any
) -> bytes:
    """A request with these batches for each partition."""
    each = [PartitionProduceData(index=index, records=batches) for index in range(partitions)]
    topics = [TopicProduceData(name=topic, partition_data=each)]
    fields: dict[str, Any] = {"acks": 1, "topic_data": topics} | more
    return request(ProduceRequest(**fields), VERSION, number)


def sums(*chunks: bytes) -> tuple[float, float, float, float, float]:
    """Requests, those without a response, records, batches and bytes of a pair that gets these chunks."""
    stage = Stage()
    through = Through(observer=stage.observation)
    for chunk in chunks:
        through.send(chunk)
    through.pair.close(Cause.CLIENT)
    stage.observation.stop()
    points = stage.points()
    requests, silent, records, batches, size_bytes = (
        totals(points, OWN + name)
        for name in (
            "requests", "acks0.requests", "produce.records", "produce.batches", "produce.bytes",
        )
    )  # fmt: skip
    return requests, silent, records, batches, size_bytes


@pytest.mark.parametrize(
    ("other", "silent", "batches"),
    [
        (produce(9, acks=0), 1, 1),
        (produce(9, transactional_id="tx"), 0, 1),
        (produce(9, transactional_id="n" * 600), 0, 1),
        (produce(9, "a longer name"), 0, 1),
        (produce(9, partitions=3), 0, 3),
        (produce(9, batches=BATCH + BATCH), 0, 2),
        (produce(9, partitions=0), 0, 0),
        (produce(9, topic_data=[]), 0, 0),
        (framed(produce(9)[4:-1]), 0, 0),
    ],
    ids=[
        "acks",
        "transaction",
        "long",
        "topic",
        "partitions",
        "batches",
        "no-partition",
        "no-topic",
        "malformed",
    ],
)
def test_another_request_among_alike_ones(other: bytes, silent: int, batches: int) -> None:
    requests = [produce(1), produce(2), other, other, produce(3), produce(4)]
    found = 4 + 2 * batches

    assert sums(b"".join(requests)) == (6, 2 * silent, 2 * found, found, found * len(BATCH))
    assert sums(*requests) == sums(b"".join(requests))


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_run_whose_last_request_is_cut(partitions: int) -> None:
    run = b"".join(produce(number, partitions=partitions) for number in range(3))
    size, found = len(run) // 3, 9 * partitions

    for cut in range(2 * size, 3 * size, 7):
        expected = (9, 0, 2 * found, found, found * len(BATCH))
        assert sums(run, run[:cut], run[cut:], run) == expected, cut


def test_many_forms_in_one_chunk() -> None:
    topics = [produce(number, "t" * (1 + number % 2)) for number in range(3_000)]

    assert sums(b"".join(topics))[:4] == (3_000, 0, 6_000, 3_000)


def test_a_run_before_a_request_that_closes_the_pair_is_counted() -> None:
    assert sums(produce(1) + produce(2) + framed(b"x") + produce(3)) == (2, 0, 4, 2, 2 * len(BATCH))
    assert sums(produce(1) + produce(2) + framed(produce(3)[4:20]) + produce(4))[:4] == (2, 0, 4, 2)
