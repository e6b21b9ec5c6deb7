"""The contract kit of the host against the source, with a cluster that can be stopped; and its commits."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from odradek.plugin import Receipt, TelemetryRecord
from odradek.testing.contracts import FarSideState, SourceContract, Subject
from odradek.topic import TopicFormat, encode_headers, record_key
from odradek_kafka.consumer_session import ConsumerSession
from odradek_kafka.kafka_source import KafkaSource, NoRoomError
from odradek_kafka.source_settings import SourceSettings

Kit = Any
"""From conftest."""
TOPIC = "client_telemetry"
TOPIC_ID = "x4Vb-KtGQ5a9IYm_qeLhWg"
STEP_S = 0.001
TIMESTAMP_MS = 1_790_000_000_000


@dataclass(eq=False)
class FakeMessage:
    """A message of the only partition."""

    number: int
    record: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
    problem: KafkaError | None = None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.record[0]

    def value(self) -> bytes | None:
        return self.record[1]

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.record[2]

    def timestamp(self) -> tuple[int, int]:
        return 1, TIMESTAMP_MS

    def error(self) -> KafkaError | None:
        return self.problem


@dataclass(eq=False)
class FakeCluster:
    """A topic of one partition, and the committed offset of the group."""

    messages: list[FakeMessage] = field(default_factory=list)
    committed: int = 0
    commits: int = 0
    state: FarSideState = FarSideState.UP
    refuse_commit: KafkaError | None = None
    is_lost: bool = False
    """The consumer has lost its partition."""

    def put(self, pushes: Sequence[TelemetryRecord]) -> None:
        for push in pushes:
            key = record_key(push.payload.client_instance_id)
            self.add(key, push.payload.data, encode_headers(push))

    def add(self, key: bytes | None, value: bytes, headers: list[tuple[str, bytes | None]]) -> None:
        self.messages.append(FakeMessage(len(self.messages), (key, value, headers)))

    def turn(self, state: FarSideState) -> None:
        self.state = state

    def received(self) -> list[bytes]:
        return []

    def consumer(self, options: dict[str, Any], **rest: Any) -> FakeConsumer:
        return FakeConsumer(self, options)

    def describe(self, options: dict[str, Any], **rest: Any) -> FakeAdmin:
        return FakeAdmin()


class FakeAdmin:
    def describe_topics(self, topics: object, **rest: Any) -> dict[str, FakeAdmin]:
        return {TOPIC: self}

    def result(self, timeout_s: float) -> FakeAdmin:
        return self

    topic_id = "x4Vb+KtGQ5a9IYm/qeLhWg"
    """As librdkafka prints it."""


class FakeConsumer:
    """Reads from the committed offset on, and confirms commits in ``poll``, as confluent-kafka does."""

    def __init__(self, cluster: FakeCluster, options: dict[str, Any]) -> None:
        self.cluster = cluster
        self.options = options
        self.position = cluster.committed
        self.pending: list[Callable[[], None]] = []

    def subscribe(self, topics: list[str]) -> None:
        assert topics == [TOPIC]

    def assignment(self) -> list[TopicPartition]:
        return [] if self.cluster.is_lost else [TopicPartition(TOPIC, 0)]

    def poll(self, timeout_s: float) -> FakeMessage | None:
        while self.pending:
            self.pending.pop()()
        if self.cluster.state is not FarSideState.UP or self.position >= len(self.cluster.messages):
            time.sleep(STEP_S)
            return None
        self.position += 1
        return self.cluster.messages[self.position - 1]

    def consume(self, count: int, timeout_s: float) -> list[FakeMessage]:
        found = self.cluster.messages[self.position : self.position + count]
        self.position += len(found)
        return found

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert asynchronous
        self.cluster.commits += 1
        if self.cluster.refuse_commit is None:
            self.cluster.committed = offsets[0].offset
        self.pending.append(partial(self.options["on_commit"], self.cluster.refuse_commit, offsets))

    def close(self) -> None:
        return None


def source_of(cluster: FakeCluster, form: TopicFormat = TopicFormat.ODRADEK, **rest: Any) -> KafkaSource:
    settings = SourceSettings(options={"bootstrap.servers": "unused"}, default_format=form)
    session = partial(ConsumerSession, make=cluster.consumer, make_admin=cluster.describe)
    return KafkaSource(settings, session, **rest)


class TestSource(SourceContract):
    @pytest.fixture
    def subject(self) -> Subject:
        cluster = FakeCluster()
        return Subject(make=lambda: source_of(cluster), supply=cluster, far_side=cluster)


@dataclass(eq=False)
class Host:
    """An intake; the test ends when it has seen enough records."""

    enough: int
    stored: list[TelemetryRecord] = field(default_factory=list)
    unread: int = 0
    room: bool = True

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        if not self.room:
            return Receipt(left=list(records))
        self.stored += records
        return Receipt(stored=len(records))

    def listening(self) -> None:
        pass

    def unreadable(self, records: int) -> None:
        self.unread += records

    def answered(self, outcome: str) -> None:
        pass


def run(source: KafkaSource, host: Host, until: Callable[[], bool]) -> None:
    """Run the source until a condition holds."""

    async def bounded() -> None:
        running = asyncio.ensure_future(source.run(host))
        async with asyncio.timeout(10):
            while not until() and not running.done():
                await asyncio.sleep(STEP_S)
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            return

    asyncio.run(bounded())


def test_offsets_are_committed_once_their_records_are_stored(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(3)
    cluster.put([kit.record(number) for number in range(3)])

    run(source_of(cluster), host, lambda: cluster.committed == 3)

    assert len(host.stored) == 3


def test_a_record_without_an_origin_gets_its_position_in_the_topic(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(2)
    cluster.put([kit.record(0), kit.record(1)])

    run(source_of(cluster), host, lambda: len(host.stored) == 2)

    assert [record.origin for record in host.stored] == [(TOPIC_ID, 0, 0), (TOPIC_ID, 0, 1)]


def test_what_is_not_telemetry_is_counted_and_committed(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(1)
    cluster.add(None, b"junk", [])
    cluster.put([kit.record(0)])

    run(source_of(cluster), host, lambda: cluster.committed == 2)

    assert (host.unread, len(host.stored)) == (1, 1)


def test_a_message_of_otlp_is_a_record_for_each_client(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(2)
    cluster.add(b"any", b"\xff", [])
    cluster.add(None, kit.data("a", client_id="orders") + kit.data("b", client_id="billing"), [])

    run(source_of(cluster, TopicFormat.OTLP_PROTO), host, lambda: cluster.committed == 2)

    assert host.unread == 1
    assert [record.context.client_id for record in host.stored] == ["orders", "billing"]
    assert {record.origin for record in host.stored} == {(TOPIC_ID, 0, 1)}
    assert {record.context.received_ms for record in host.stored} == {TIMESTAMP_MS}
    assert not any(record.labeled for record in host.stored)


def test_a_refused_commit_is_sent_again(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_kafka.consumer_session.COMMIT_AGAIN_S", 0.01)
    cluster, host = FakeCluster(refuse_commit=kit.error("_WAIT_COORD")), Host(1)
    cluster.put([kit.record(0)])

    def answered() -> bool:
        if cluster.commits >= 2:
            cluster.refuse_commit = None
        return cluster.committed == 1

    run(source_of(cluster), host, answered)

    assert len(host.stored) == 1


def test_the_offset_of_a_lost_partition_is_not_committed(kit: Kit) -> None:
    cluster, host = FakeCluster(is_lost=True), Host(1)
    cluster.put([kit.record(0)])

    run(source_of(cluster), host, lambda: len(host.stored) == 1)

    assert cluster.commits == 0


def test_a_log_that_stays_full_ends_the_membership(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(1, room=False)
    cluster.put([kit.record(0)])

    with pytest.raises(NoRoomError, match="no room"):
        run(source_of(cluster, patience_s=0.02), host, lambda: False)

    assert (cluster.committed, cluster.commits) == (0, 0)


def test_a_fatal_error_ends_the_call(kit: Kit) -> None:
    cluster, host = FakeCluster(), Host(1)
    cluster.put([kit.record(0)])
    cluster.messages[0].problem = kit.error("_FATAL", fatal=True)

    with pytest.raises(KafkaException):
        run(source_of(cluster), host, lambda: False)


def test_the_lag_is_that_of_the_statistics() -> None:
    cluster = FakeCluster()
    session = ConsumerSession(SourceSettings(options={}), cluster.consumer)
    partitions = {number: {"consumer_lag": lag} for number, lag in {"0": 5, "1": -1, "2": 7, "-1": 9}.items()}

    session.note_stats(json.dumps({"topics": {TOPIC: {"partitions": partitions}}}))

    assert session.lag == 12
