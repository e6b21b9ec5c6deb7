"""The rows of the stages bench: how the host is started, and the requests that are repeated."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.frames import ask
from bench.payloads import PAYLOADS
from bench.wire import LENGTH, frame_of
from odradek.client.connection import answer_type
from odradek.wire.codec import decode
from odradek.wire.header import flexible_response_header, read_response_header
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.batches import batch_of

TOPIC = "bench"
PRODUCE_VERSION = FETCH_VERSION = 12
"""The newest that name topics."""
RECORD_BYTES = 1000
KEEP_LITTLE = (
    "log.segment.bytes=67108864",
    "log.retention.bytes=67108864",
    "log.retention.check.interval.ms=200",
    "log.segment.delete.delay.ms=0",
)
"""So that records that are produced at full speed do not fill the disk."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Requests to repeat, and the host's answer to the first one, all with their lengths."""

    frames: list[bytes]
    answer: bytes


class Recorder:
    """One connection to the host, on which requests are prepared."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def send(self, request: Any, version: int) -> Any:
        """Send a request and return its response."""
        return self.response(request, version, self.answer(frame_of(request, version)))

    def answer(self, frame: bytes) -> bytes:
        """The answer to a request, with its length."""
        answer = ask(self.connection, frame)
        return LENGTH.pack(len(answer)) + answer

    @staticmethod
    def response(request: Any, version: int, answer: bytes) -> Any:
        _, start = read_response_header(answer, LENGTH.size, flexible_response_header(request, version))
        return decode(answer_type(type(request)), version, answer, start)


Record = Callable[[Recorder, int], Recorded]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    record: Record
    """Prepares the requests of a number of connections."""
    connections: int = 64
    host: tuple[str, ...] = ()
    """Arguments of ``stages_host.py``."""
    appended: int = 0
    """The records that each request appends. If there are none, all answers of a connection are equal."""


def pushes(payload: str) -> Record:
    """A push of one client instance per connection."""

    def record(recorder: Recorder, connections: int) -> Recorded:
        made = PAYLOADS[payload]()
        frames = []
        for number in range(connections):
            instance_id = (number + 2).to_bytes(16)
            asked = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
            push = PushTelemetryRequest(
                client_instance_id=instance_id,
                subscription_id=recorder.send(asked, 0).subscription_id,
                compression_type=made.codec,
                metrics=made.wire,
            )
            frames.append(frame_of(push, 0))
        answer = recorder.answer(frames[0])
        assert recorder.response(push, 0, answer).error_code == 0
        return Recorded(frames, answer)

    return record


def create_topic(recorder: Recorder) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    assert recorder.send(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def produce_request(records: int) -> ProduceRequest:
    value = bytes(range(256)) * 3 + bytes(RECORD_BYTES - 768)
    batch = batch_of(*[value] * records, timestamp_ms=time.time_ns() // 1_000_000)
    partition = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[partition])]
    )


def produces(records: int) -> Record:
    """A Produce request with a batch, whose producer is not idempotent: it can be sent many times."""

    def record(recorder: Recorder, _connections: int) -> Recorded:
        create_topic(recorder)
        request = produce_request(records)
        frame = frame_of(request, PRODUCE_VERSION)
        answer = recorder.answer(frame)
        response = recorder.response(request, PRODUCE_VERSION, answer)
        assert response.responses[0].partition_responses[0].error_code == 0
        return Recorded([frame], answer)

    return record


def base_offset(recorder: Recorder, frame: bytes) -> int:
    """Append the batch of a Produce request once more, and return its offset."""
    answer = recorder.answer(frame)
    response = recorder.response(ProduceRequest(), PRODUCE_VERSION, answer)
    offset: int = response.responses[0].partition_responses[0].base_offset
    return offset


def fetches(batches: int, records: int) -> Record:
    """A Fetch request, without a session, that is answered by some batches."""

    def record(recorder: Recorder, _connections: int) -> Recorded:
        create_topic(recorder)
        for _ in range(batches):
            recorder.send(produce_request(records), PRODUCE_VERSION)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
        )
        frame = frame_of(request, FETCH_VERSION)
        answer = recorder.answer(frame)
        found = recorder.response(request, FETCH_VERSION, answer).responses[0].partitions[0]
        assert len(found.records) > batches * records * RECORD_BYTES
        return Recorded([frame], answer)

    return record


RECORDS = Row(
    title="", record=produces(1), host=("--clock", "real", *(f"--set={each}" for each in KEEP_LITTLE))
)
LABELED = ("--receiver", "joining", "--enrich")
ROWS = {
    "small": Row(title="small push, 500 B, not compressed", record=pushes("small")),
    "java": Row(title="Java-like push, 150 metrics, 21 kB in zstd", record=pushes("java25k"), host=LABELED),
    "librd": Row(
        title="librdkafka-like push, 40 metrics, 5.4 kB in zstd", record=pushes("librd6k"), host=LABELED
    ),
    "single": replace(RECORDS, title="produce of one record of 1000 B", appended=1),
    "large": replace(
        RECORDS,
        title="produce of 1000 records of 1000 B",
        record=produces(1000),
        connections=4,
        appended=1000,
    ),
    "fetch": replace(
        RECORDS, title="fetch of 60 batches of 16 records", record=fetches(60, 16), connections=4
    ),
}
