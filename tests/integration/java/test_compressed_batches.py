"""Batches in every form of every codec: what Apache Kafka takes is taken, and what it refuses is refused.

The code of a refusal differs: Kafka answers UNKNOWN_SERVER_ERROR to most of what it cannot decompress.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import pytest
from contrib.capture.kafka_node import kafka_node

from odradek.log.log_config import LogConfig
from odradek.log.log_validator import OpeningBudget, prepared
from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_batch
from odradek.wire.compression import Codec, compress
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.record_batch import HEADER_BYTES
from support.batches import altered, batch_of
from support.compressed_bodies import Body, bodies
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

TOPIC: Final = "bodies"
MUTATIONS: Final = 2
PARTITIONS: Final = 50
"""So many batches are sent at once."""
LISTED: Final = re.compile(
    "unknown header flags|frameSize_wrong|contentChecksum_invalid|zstd: ends inside"
    "|record should end|record of|need "
)
"""Our words for what Kafka takes: the differences that reference/protocol-coverage.md lists."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[WireClient]:
    """A client of a node that has the topic."""
    with kafka_node() as node, WireClient(("127.0.0.1", node.port), timeout_s=30) as client:
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        client.send(CreateTopicsRequest(topics=[topic]), 7)
        plain = [batch_of(b"v", timestamp_ms=now_ms())] * PARTITIONS
        wait_until(lambda: all(taken(client, plain)), "leaders")
        yield client


def now_ms() -> int:
    return int(time.time() * 1000)


def taken(client: WireClient, batches: Sequence[bytes]) -> list[bool]:
    """Whether Kafka takes each of at most `PARTITIONS` batches."""
    rows = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    data = TopicProduceData(name=TOPIC, partition_data=rows)
    (topic,) = client.send(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[data]), 11).responses
    codes = {row.index: row.error_code for row in topic.partition_responses}
    return [not codes[index] for index in range(len(batches))]


def complaint(batch: bytes) -> str:
    """Why the host refuses a batch; empty if it takes it."""
    try:
        header = check_batch(batch)
        prepared(memoryview(batch), header, LogConfig(), now_ms(), OpeningBudget.unlimited())
    except ApiError as error:
        return str(error.message)
    return ""


def differences(kafka: WireClient, plain: bytes, found: list[Body]) -> list[tuple[str, str]]:
    """The bodies that only one side takes, without those that are listed."""
    batches = [altered(plain, body.data, attributes=int(body.codec)) for body in found]
    theirs = [
        each
        for start in range(0, len(batches), PARTITIONS)
        for each in taken(kafka, batches[start : start + PARTITIONS])
    ]
    ours = [complaint(batch) for batch in batches]
    return [
        (body.label, words)
        for body, words, is_taken in zip(found, ours, theirs, strict=True)
        if is_taken is bool(words) and not (is_taken and LISTED.search(words))
    ]


def test_what_kafka_takes_is_taken_and_what_it_refuses_is_refused(kafka: WireClient) -> None:
    plain = batch_of(b"first value", b"second value", timestamp_ms=now_ms())

    assert differences(kafka, plain, bodies(plain[HEADER_BYTES:], Random(1), MUTATIONS)) == []


def test_compressed_offsets_that_are_not_consecutive_are_refused(kafka: WireClient) -> None:
    plain = batch_of(b"first value", b"second value", timestamp_ms=now_ms())
    at = plain.index(b"second value") - 4
    assert plain[at : at + 1] == b"\x02", "the offset delta of the second record"
    records = [plain[HEADER_BYTES:at] + delta + plain[at + 1 :] for delta in (b"\0", b"\1", b"\4")]
    found = [Body(f"{codec} {at}", codec, compress(codec, content)) for codec in Codec for content in records]

    assert differences(kafka, plain, found) == []
    assert [bool(complaint(altered(plain, each.data, attributes=each.codec))) for each in found] == [
        each.codec != Codec.NONE for each in found
    ]
