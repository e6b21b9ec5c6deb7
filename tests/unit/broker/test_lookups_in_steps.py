"""ListOffsets and Produce for many partitions, or over large batches, give the loop back in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odradek.broker.topics import Topic
from odradek.log import offset_lookup
from odradek.log.partition_log import PartitionLog
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.record import Record, parse_records
from odradek.wire.record_batch import build_batch
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.ticking_clock import TickingClock

STEPS_A_TURN = 12
"""A turn of a millisecond in which each step takes a tenth of it, and some room."""
PARTITIONS = 120


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def client(clock: TickingClock) -> BrokerClient:
    client = BrokerClient(make_broker(clock=clock))
    client.broker.topics.create("t", PARTITIONS, {})
    return client


@pytest.fixture
def topic(client: BrokerClient) -> Topic:
    found = client.broker.topics.named("t")
    assert found is not None
    return found


class Turns:
    """Counts something in each turn."""

    def __init__(self) -> None:
        self.counts = [0]

    def count(self) -> None:
        self.counts[-1] += 1

    def run(self, clock: TickingClock, answer: Callable[[], Any]) -> Any:
        """Run turns until the answer is there."""
        while (response := answer()) is None:
            self.counts.append(0)
            clock.one_turn()
        return response


def looking_up(timestamp_ms: int, *indexes: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=timestamp_ms) for index in indexes]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


def offsets(response: Any) -> list[tuple[int, int]]:
    return [(row.error_code, row.offset) for each in response.topics for row in each.partitions]


def large_batch(records: int, codec: Codec, first_ms: int) -> bytes:
    return build_batch([Record(b"k", b"v" * 100, first_ms + n) for n in range(records)], codec=codec)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Turns:
    turns = Turns()
    original = parse_records

    def counting(*args: Any) -> Iterator[Record]:
        for record in original(*args):
            turns.count()
            yield record

    monkeypatch.setattr(offset_lookup, "parse_records", counting)
    return turns


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD, Codec.GZIP])
def test_a_large_batch_is_searched_in_steps(
    client: BrokerClient, clock: TickingClock, topic: Topic, parsed: Turns, codec: Codec
) -> None:
    now_ms = clock.now_ms()
    topic.partitions[0].append(large_batch(3_000, codec, now_ms), now_ms)

    response = parsed.run(clock, client.defer(looking_up(now_ms + 2_990, 0)))

    assert offsets(response) == [(0, 2_990)]
    assert sum(parsed.counts) == 2_991
    assert max(parsed.counts) <= STEPS_A_TURN * offset_lookup.RECORDS_A_STEP


def test_a_batch_that_inflates_is_opened_elsewhere(
    client: BrokerClient, clock: TickingClock, topic: Topic
) -> None:
    now_ms = clock.now_ms()
    topic.partitions[0].append(large_batch(9_000, Codec.ZSTD, now_ms), now_ms)
    elsewhere: list[Callable[[], Any]] = []

    def offload(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        elsewhere.append(work)
        done(work())

    client.broker.steps.offload = offload
    answer = client.defer(looking_up(now_ms + 8_990, 0))
    clock.advance(0)

    assert offsets(answer()) == [(0, 8_990)]
    assert len(elsewhere) == 1


def test_many_partitions_are_looked_up_in_steps(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, log_of = Turns(), type(client.broker.topics).log

    def counting(*args: Any) -> PartitionLog:
        turns.count()
        return log_of(*args)

    monkeypatch.setattr(type(client.broker.topics), "log", counting)

    response = turns.run(clock, client.defer(looking_up(-1, *range(PARTITIONS))))

    assert offsets(response) == [(0, 0)] * PARTITIONS
    assert max(turns.counts) <= STEPS_A_TURN


def test_a_topic_that_is_deleted_during_a_lookup_is_unknown(
    client: BrokerClient, clock: TickingClock, topic: Topic
) -> None:
    now_ms = clock.now_ms()
    for _ in range(3):
        topic.partitions[0].append(large_batch(2_000, Codec.NONE, now_ms), now_ms)
    topic.partitions[0].roll(now_ms)
    answer = client.defer(looking_up(now_ms + 1_999, 0))
    assert answer() is None

    client.broker.topics.delete(topic)
    clock.advance(0)

    assert offsets(answer()) in ([(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)], [(0, 1_999)])


def test_records_that_are_deleted_during_a_lookup_are_not_found(
    client: BrokerClient, clock: TickingClock, topic: Topic
) -> None:
    now_ms, log = clock.now_ms(), topic.partitions[0]
    # the first two batches have no record that is late enough, although the index says so
    for first_ms in (now_ms, now_ms + 500):
        log.append(large_batch(1_000, Codec.NONE, first_ms), now_ms)
        log.roll(now_ms)
    answer = client.defer(looking_up(now_ms + 900, 0))
    assert answer() is None

    log.delete_records(1_000)
    clock.advance(0)

    assert offsets(answer()) == [(0, 1_400)]


def producing(*indexes: int) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch_of(b"v")) for index in indexes]
    return ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )


def produced(response: Any) -> list[tuple[int, int, int]]:
    return [
        (row.index, row.error_code, row.base_offset)
        for each in response.responses
        for row in each.partition_responses
    ]


@pytest.mark.parametrize("method", ["prepare", "append_prepared"])
def test_batches_for_many_partitions_are_appended_in_steps(
    client: BrokerClient, clock: TickingClock, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    turns, original = Turns(), getattr(PartitionLog, method)

    def counting(*args: Any, **kw: Any) -> Any:
        turns.count()
        return original(*args, **kw)

    monkeypatch.setattr(PartitionLog, method, counting)

    response = turns.run(clock, client.defer(producing(*range(PARTITIONS)), 12))

    assert produced(response) == [(index, 0, 0) for index in range(PARTITIONS)]
    assert sum(turns.counts) == PARTITIONS
    assert max(turns.counts) <= STEPS_A_TURN


def test_a_producer_without_acks_is_disconnected_late_too(client: BrokerClient, clock: TickingClock) -> None:
    request = producing(*range(PARTITIONS + 1))
    request.acks = 0
    answer = client.defer(request, 12)
    assert answer() is None

    clock.advance(0)

    with pytest.raises(EOFError):
        answer()
    assert client.dispatcher.unexpected_errors == 0


def test_the_batches_of_a_lost_connection_are_appended(
    client: BrokerClient, clock: TickingClock, topic: Topic
) -> None:
    client.defer(producing(*range(PARTITIONS)), 12)

    clock.advance(0)

    assert [log.log_end_offset for log in topic.partitions] == [1] * PARTITIONS
