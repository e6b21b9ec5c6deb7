"""Ranges of a topic, read from a host; and the planner's reaction to retention and broker failures."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from spark_topics import TOPIC, fill, options, records

import odradek.testing
from odradek.testing import RunningHost
from odradek_spark.source import topic
from odradek_spark.source.limited_stream import LimitedTopicStream
from odradek_spark.source.offsets import OffsetRange, ranges
from odradek_spark.source.options import OptionError
from odradek_spark.source.stream import Piece, TopicBatch, TopicStream
from odradek_spark.source.topic import DataLoss, TopicError, TopicReader, Unreachable


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, 2, segment_bytes=1 << 20)
        yield running


def at(**offsets: int) -> dict[str, dict[str, int]]:
    """Offsets as Spark stores them: ``p0`` is partition 0."""
    return {TOPIC: {name[1:]: offset for name, offset in offsets.items()}}


def planner_of(host: RunningHost, **more: str) -> LimitedTopicStream:
    """The stream of a topic, from its beginning."""
    return LimitedTopicStream(options(host.bootstrap, startingOffsets="earliest", **more))


def delete_until(host: RunningHost, partition: int, offset: int) -> None:
    """Delete records as retention does."""
    log = host.host.broker.topics.log(TOPIC, partition)

    def delete() -> None:
        log.roll(host.host.clock.now_ms())
        log.delete_records(offset)

    host.call(delete)


def test_a_range_is_read_exactly_to_its_end(host: RunningHost) -> None:
    fill(host.bootstrap, records(60, partitions=2))
    reader = TopicReader(options(host.bootstrap))

    found = [record for chunk in reader.read(OffsetRange(1, 5, 17)) for record in chunk]
    reader.close()

    assert [(each.partition, each.offset) for each in found] == [(1, offset) for offset in range(5, 17)]
    assert [each.value for each in found] == [each.value for each in records(60, partitions=2)[11:35:2]]
    assert dict(found[0].headers)["client_id"] == b"client-2"


def test_reading_a_range_can_stop_in_the_middle(host: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "CHUNK_BYTES", 1)
    fill(host.bootstrap, records(3_000))
    reader = TopicReader(options(host.bootstrap))
    reading = reader.read(OffsetRange(0, 0, 3_000))
    found = next(reading)
    reader.close()

    assert isinstance(reading, Generator)
    reading.close()

    assert found[0].offset == 0


class Pausing:
    """A consumer that once returns nothing."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.has_paused = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.consumer, name)

    def consume(self, number: int, timeout_s: float) -> list[Message]:
        if not self.has_paused:
            self.has_paused = True
            return []
        return [*self.consumer.consume(number, timeout_s)]


def test_the_callers_time_between_chunks_does_not_count_as_the_brokers(
    host: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(topic, "POLLED", 10)
    monkeypatch.setattr(topic, "CHUNK_BYTES", 1)
    monkeypatch.setattr("odradek_spark.source.topic.time.monotonic", lambda: now_s[0])
    fill(host.bootstrap, records(300))
    reader = TopicReader(options(host.bootstrap))
    reader.consumer = pausing = Pausing(reader.consumer)
    offsets = []

    for chunk in reader.read(OffsetRange(0, 0, 300)):
        offsets += [each.offset for each in chunk]
        now_s[0] += 100.0
        pausing.has_paused = False
    reader.close()

    assert offsets == list(range(300))


def test_a_chunk_has_few_large_records(host: RunningHost, monkeypatch: pytest.MonkeyPatch) -> None:
    size, count = 100_000, 60
    monkeypatch.setattr(topic, "CHUNK_BYTES", 10 * size)
    fill(host.bootstrap, [each._replace(value=bytes(size)) for each in records(count)])
    reader = TopicReader(options(host.bootstrap))

    chunks = [len(chunk) for chunk in reader.read(OffsetRange(0, 0, count))]
    reader.close()

    assert sum(chunks) == count
    assert max(chunks) <= 11


def test_transaction_markers_are_skipped(host: RunningHost) -> None:
    producer = Producer(
        {"bootstrap.servers": host.bootstrap, "transactional.id": "t", "enable.metrics.push": False}
    )
    producer.init_transactions()
    for commit in (True, False, True):
        producer.begin_transaction()
        for each in records(3):
            producer.produce(TOPIC, each.value, each.key, 0, headers=list(each.headers))
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()
    reader = TopicReader(options(host.bootstrap))

    marks = reader.watermarks([0])
    found = [each.offset for chunk in reader.read(OffsetRange(0, *marks[0])) for each in chunk]
    reader.close()

    assert marks == {0: (0, 12)}
    assert found == [0, 1, 2, 8, 9, 10]


def test_a_missing_topic_is_reported(host: RunningHost) -> None:
    reader = TopicReader(options(host.bootstrap, subscribe="nope"))

    with pytest.raises(TopicError, match=r"^\[ODRADEK_NO_TOPIC\] topic nope: .*telemetry\.durability"):
        reader.partitions()
    reader.close()


def test_options_unknown_to_librdkafka_are_reported() -> None:
    with pytest.raises(TopicError, match='kafka options: No such configuration property: "bogus"'):
        TopicReader(options("127.0.0.1:1", **{"kafka.bogus": "1"}))


def test_an_unreachable_broker_is_reported() -> None:
    reader = TopicReader(options("127.0.0.1:1"), 1.0)

    with pytest.raises(Unreachable, match=r"^\[ODRADEK_UNREACHABLE\] topic telemetry: 127\.0\.0\.1:1: .*"):
        reader.partitions()
    reader.close()


def test_a_host_that_stops_during_a_read_is_reported_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "CHUNK_BYTES", 1)
    with odradek.testing.host(data_dir=tmp_path) as host:
        host.topics.create(TOPIC)
        fill(host.bootstrap, records(3_000))
        port = host.address[1]
        reader = TopicReader(options(host.bootstrap, **{"kafka.queued.min.messages": "1"}))
        reading = reader.read(OffsetRange(0, 0, 4_000))
        first = next(reading)
        reader.timeout_s = 1.0

    with pytest.raises(Unreachable, match=r"telemetry-0 at offset \d+: .*: no answer"):
        list(reading)
    with odradek.testing.host(data_dir=tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}"):
        reader.timeout_s = 30.0
        again = sum(len(chunk) for chunk in reader.read(OffsetRange(0, 0, 3_000)))
    reader.close()

    assert first[0].offset == 0
    assert again == 3_000


def test_offsets_lost_to_retention_are_an_error(host: RunningHost) -> None:
    fill(host.bootstrap, records(20, partitions=1))
    delete_until(host, 0, 7)
    planner = planner_of(host)

    with pytest.raises(
        DataLoss,
        match=r"^\[ODRADEK_DATA_LOSS\] telemetry-0: offsets 3 to 6 were .*--allow-data-loss",
    ):
        planner.latestOffset(at(p0=3, p1=0), ReadAllAvailable())
    with pytest.raises(DataLoss, match="telemetry-0: retention deleted offset 3"):
        list(planner.topic.read(OffsetRange(0, 3, 20)))


def test_a_recreated_topic_is_reported(host: RunningHost) -> None:
    fill(host.bootstrap, records(3))
    planner = planner_of(host, failOnDataLoss="false")

    with pytest.raises(DataLoss, match=r"telemetry-0 ends at offset 3, but it was already read up to 10"):
        planner.latestOffset(at(p0=10, p1=0), ReadAllAvailable())


def test_a_recreated_topic_with_fewer_partitions_is_reported(host: RunningHost) -> None:
    fill(host.bootstrap, records(3))
    planner = planner_of(host)

    with pytest.raises(DataLoss, match="telemetry has no partition 2 any more"):
        planner.latestOffset(at(p0=1, p1=0, p2=4), ReadAllAvailable())


def test_the_end_of_an_open_transaction_is_not_read(host: RunningHost) -> None:
    producer = Producer(
        {"bootstrap.servers": host.bootstrap, "transactional.id": "t", "enable.metrics.push": False}
    )
    fill(host.bootstrap, records(3))
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", b"key", 0)
    producer.flush()
    fill(host.bootstrap, records(2))
    planner = planner_of(host)

    during = planner.latestOffset(at(p0=0, p1=0), ReadAllAvailable())
    producer.abort_transaction()
    after = planner.latestOffset(during, ReadAllAvailable())
    found = [each.offset for chunk in planner.topic.read(OffsetRange(0, 3, 7)) for each in chunk]

    assert (during, after, found) == (at(p0=3, p1=0), at(p0=7, p1=0), [4, 5])


def test_batches_follow_each_other_up_to_the_end_at_the_start(host: RunningHost) -> None:
    fill(host.bootstrap, records(400, partitions=2))
    planner = planner_of(host)
    planner.prepareForTriggerAvailableNow()
    fill(host.bootstrap, records(100, first=400, partitions=2))
    reached, read = planner.initialOffset(), []

    while (end := planner.latestOffset(reached, ReadMaxBytes(10_000))) != reached:
        read.append(ranges(planner.read_back(reached), planner.read_back(end)))
        reached = end

    assert len(read) > 5
    assert reached == at(p0=200, p1=200)
    assert planner.reportLatestOffset() == at(p0=250, p1=250)


def test_an_added_partition_is_read_from_its_start(host: RunningHost) -> None:
    fill(host.bootstrap, records(10, partitions=2))
    planner = planner_of(host)
    start = planner.latestOffset(planner.initialOffset(), ReadAllAvailable())
    topics = host.host.broker.topics
    telemetry = topics.named(TOPIC)
    assert telemetry is not None
    host.call(lambda: topics.grow(telemetry, 3))
    planner.topic.partitions()
    fill(host.bootstrap, [each._replace(partition=2) for each in records(4)])

    end = planner.latestOffset(start, ReadAllAvailable())
    pieces = planner.partitions(start, end)

    assert end == at(p0=5, p1=5, p2=4)
    assert [each.ranges for each in pieces if isinstance(each, Piece)] == [(OffsetRange(2, 0, 4),)]


def test_lost_offsets_are_skipped_if_that_is_allowed(host: RunningHost) -> None:
    fill(host.bootstrap, records(20))
    delete_until(host, 0, 7)
    planner = planner_of(host, failOnDataLoss="false")

    end = planner.latestOffset(at(p0=3, p1=0), ReadAllAvailable())
    (piece,) = planner.partitions(at(p0=3, p1=0), end)
    gone = planner.partitions(at(p0=3, p1=0), at(p0=6, p1=0))

    assert end == at(p0=20, p1=0)
    assert isinstance(piece, Piece)
    assert (piece.ranges, gone) == ((OffsetRange(0, 7, 20),), [])


def test_a_small_batch_of_several_partitions_is_one_task(host: RunningHost) -> None:
    fill(host.bootstrap, records(11, partitions=2))
    planner = planner_of(host)

    (piece,) = planner.partitions(at(p0=0, p1=0), at(p0=6, p1=5))
    rows = [row for batch in planner.read(piece) for row in batch.to_pylist()]

    sent = records(11, partitions=2)
    assert [(row["partition"], row["offset"]) for row in rows] == [
        *((0, offset) for offset in range(6)),
        *((1, offset) for offset in range(5)),
    ]
    assert [row["value"] for row in rows] == [each.value for each in (*sent[::2], *sent[1::2])]
    assert [(each["key"], each["value"]) for each in rows[0]["headers"]] == [*sent[0].headers]
    assert {(row["topic"], row["timestampType"]) for row in rows} == {(TOPIC, 0)}


@pytest.mark.parametrize(
    ("more", "sizes"),
    [({}, [10]), ({"minPartitions": "5"}, [2, 2, 2, 2, 2]), ({"maxRecordsPerPartition": "4"}, [4, 4, 2])],
)
def test_options_set_the_number_of_tasks(host: RunningHost, more: dict[str, str], sizes: list[int]) -> None:
    fill(host.bootstrap, records(10))

    pieces = planner_of(host, **more).partitions(at(p0=0, p1=0), at(p0=10, p1=0))

    assert [each.ranges[0].records for each in pieces if isinstance(each, Piece)] == sizes


def test_a_batch_has_at_most_so_many_offsets(host: RunningHost) -> None:
    fill(host.bootstrap, records(40, partitions=2))
    planner = planner_of(host, maxOffsetsPerTrigger="10")
    limit = planner.getDefaultReadLimit()

    end = planner.latestOffset(planner.initialOffset(), limit)

    assert limit == ReadMaxRows(10)
    assert end == at(p0=5, p1=5)


@pytest.mark.parametrize("minimum", [{"minBytesPerTrigger": "1000000"}, {"minOffsetsPerTrigger": "100"}])
def test_a_trigger_waits_for_enough_records_until_the_delay_has_passed(
    host: RunningHost, minimum: dict[str, str]
) -> None:
    now_s = [0.0]
    fill(host.bootstrap, records(10, partitions=2))
    given = options(host.bootstrap, startingOffsets="earliest", maxTriggerDelay="10s", **minimum)
    planner = LimitedTopicStream(given, lambda: now_s[0])
    first = planner.latestOffset(planner.initialOffset(), ReadAllAvailable())
    fill(host.bootstrap, records(2, partitions=2))

    waiting = planner.latestOffset(first, ReadAllAvailable())
    now_s[0] = 10.0
    last = planner.latestOffset(first, ReadAllAvailable())

    assert (first, waiting, last) == (at(p0=5, p1=5), at(p0=5, p1=5), at(p0=6, p1=6))


@pytest.mark.parametrize(
    ("given", "begin"),
    [
        ({}, at(p0=20, p1=20)),
        ({"startingOffsets": "earliest"}, at(p0=0, p1=0)),
        ({"startingOffsets": f'{{"{TOPIC}": {{"0": 7, "1": -1}}}}'}, at(p0=7, p1=20)),
        ({"startingTimestamp": "0"}, at(p0=0, p1=0)),
        (
            {"startingTimestamp": "99999999999999", "startingOffsetsByTimestampStrategy": "latest"},
            at(p0=20, p1=20),
        ),
    ],
)
def test_a_stream_begins_where_the_options_say(
    host: RunningHost, given: dict[str, str], begin: dict[str, dict[str, int]]
) -> None:
    fill(host.bootstrap, records(40, partitions=2))

    assert LimitedTopicStream(options(host.bootstrap, **given)).initialOffset() == begin


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"startingTimestamp": "99999999999999"}, "has no record since 99999999999999"),
        ({"startingOffsets": f'{{"{TOPIC}": {{"7": 0}}}}'}, "has no partition 7"),
    ],
)
def test_a_beginning_that_does_not_exist_is_refused(
    host: RunningHost, given: dict[str, str], problem: str
) -> None:
    fill(host.bootstrap, records(2))

    with pytest.raises(OptionError, match=problem):
        LimitedTopicStream(options(host.bootstrap, **given)).initialOffset()


def test_a_batch_read_has_the_records_between_two_positions(host: RunningHost) -> None:
    fill(host.bootstrap, records(20))
    ending = f'{{"{TOPIC}": {{"0": 8, "1": -1}}}}'
    batch = TopicBatch(options(host.bootstrap, startingOffsets="earliest", endingOffsets=ending))

    rows = [row for piece in batch.partitions() for each in batch.read(piece) for row in each.to_pylist()]

    assert [row["offset"] for row in rows] == list(range(8))


def test_before_spark_4_2_a_batch_is_everything(host: RunningHost) -> None:
    fill(host.bootstrap, records(10, partitions=2))

    assert TopicStream(options(host.bootstrap)).latestOffset() == at(p0=5, p1=5)


def test_offsets_of_earlier_versions_are_read(host: RunningHost) -> None:
    fill(host.bootstrap, records(10, partitions=2))

    end = planner_of(host).latestOffset({"0": 2, "1": 5}, ReadAllAvailable())

    assert end == at(p0=5, p1=5)


def test_headers_can_be_left_out(host: RunningHost) -> None:
    fill(host.bootstrap, records(1))
    batch = TopicBatch(options(host.bootstrap, includeHeaders="false"))

    (rows,) = [each for piece in batch.partitions() for each in batch.read(piece)]

    assert rows.schema.names[-1] == "timestampType"
