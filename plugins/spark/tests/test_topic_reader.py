"""Ranges of a topic, read from a host; and the planner's reaction to retention and broker failures."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from spark_topics import TOPIC, fill, options, records

import odradek.testing
from odradek.testing import RunningHost
from odradek_spark.source import data_source, topic
from odradek_spark.source.data_source import Piece, TopicStreamReader, followed, read_piece
from odradek_spark.source.offsets import OffsetRange, from_json, ranges
from odradek_spark.source.topic import DataLoss, TopicError, TopicReader, Unreachable
from odradek_spark.tables.dataset import Dataset


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, 2, segment_bytes=1 << 20)
        yield running


@pytest.fixture(autouse=True)
def planners() -> Iterator[None]:
    yield
    for each in data_source.PLANNERS.values():
        each.close()
    data_source.PLANNERS.clear()


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
    reader = TopicReader(options(host.bootstrap, topic="nope"))

    with pytest.raises(TopicError, match=r"topic nope: .*Unknown topic.*telemetry\.durability"):
        reader.partitions()
    reader.close()


def test_options_unknown_to_librdkafka_are_reported() -> None:
    with pytest.raises(TopicError, match='kafka options: No such configuration property: "bogus"'):
        TopicReader(options("127.0.0.1:1", **{"kafka.bogus": "1"}))


def test_an_unreachable_broker_is_reported() -> None:
    reader = TopicReader(options("127.0.0.1:1"), 1.0)

    with pytest.raises(Unreachable, match=r"topic telemetry: 127\.0\.0\.1:1: .*"):
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
    planner = TopicStreamReader(options(host.bootstrap))

    with pytest.raises(
        DataLoss, match=r"telemetry-0: offsets 3 to 6 were deleted by retention.*--allow-data-loss"
    ):
        planner.latestOffset({"0": 3, "1": 0}, ReadAllAvailable())
    with pytest.raises(DataLoss, match="telemetry-0: retention deleted offset 3"):
        list(planner.topic.read(OffsetRange(0, 3, 20)))


def test_offsets_lost_to_retention_are_counted_if_allowed(host: RunningHost, tmp_path: Path) -> None:
    fill(host.bootstrap, records(20, partitions=1))
    delete_until(host, 0, 7)
    given = options(host.bootstrap, failOnDataLoss="false", rows="manifests", dataset=str(tmp_path / "data"))
    planner = TopicStreamReader(given)
    start = {"0": 3, "1": 0}

    end = planner.latestOffset(start, ReadAllAvailable())
    pieces = planner.partitions(start, end)
    bodies = [
        row["body"]
        for piece in pieces
        for batch in read_piece(given, piece)
        for row in batch.to_pylist()
        if row["kind"] == "range"
    ]

    assert end == {"0": 20, "1": 0}
    assert sorted(
        (one.start, one.end, each.is_deleted)
        for each in pieces
        if isinstance(each, Piece)
        for one in each.ranges
    ) == [
        (3, 7, True),
        (7, 20, False),
    ]
    assert sorted(bodies) == [
        '{"partition": 0, "start": 3, "end": 7, "pushes": 0, "points": 0, "dead_letters": 0, '
        '"payload_bytes": 0, "lost": 4, "further": 0}',
        '{"partition": 0, "start": 7, "end": 20, "pushes": 13, "points": 39, "dead_letters": 0, '
        f'"payload_bytes": {sum(len(each.value or b"") for each in records(20)[7:])}, '
        '"lost": 0, "further": 0}',
    ]


def test_records_lost_to_retention_between_plan_and_read_are_counted_too(
    host: RunningHost, tmp_path: Path
) -> None:
    fill(host.bootstrap, records(20, partitions=1))
    given = options(host.bootstrap, failOnDataLoss="false", rows="manifests", dataset=str(tmp_path / "data"))
    pieces = TopicStreamReader(given).partitions({"0": 3, "1": 0}, {"0": 12, "1": 0})
    delete_until(host, 0, 7)

    (batch,) = [batch for piece in pieces for batch in read_piece(given, piece)]

    assert '"start": 3, "end": 12, "pushes": 5' in batch["body"][batch.num_rows - 1].as_py()
    assert '"lost": 4, ' in batch["body"][batch.num_rows - 1].as_py()


def test_a_completely_lost_range_counts_as_read_to_its_end(host: RunningHost, tmp_path: Path) -> None:
    fill(host.bootstrap, records(20, partitions=1))
    delete_until(host, 0, 15)
    given = options(host.bootstrap, failOnDataLoss="false", rows="manifests", dataset=str(tmp_path / "data"))

    pieces = TopicStreamReader(given).partitions({"0": 3, "1": 0}, {"0": 12, "1": 0})

    assert [(each.ranges, each.is_deleted) for each in pieces if isinstance(each, Piece)] == [
        ((OffsetRange(0, 3, 12),), True)
    ]


def test_a_recreated_topic_is_reported(host: RunningHost) -> None:
    fill(host.bootstrap, records(3))
    planner = TopicStreamReader(options(host.bootstrap, failOnDataLoss="false"))

    with pytest.raises(DataLoss, match=r"telemetry-0 ends at offset 3, but it was already read up to 10"):
        planner.latestOffset({"0": 10, "1": 0}, ReadAllAvailable())


def test_a_recreated_topic_with_fewer_partitions_is_reported(host: RunningHost) -> None:
    fill(host.bootstrap, records(3))
    planner = TopicStreamReader(options(host.bootstrap))

    with pytest.raises(DataLoss, match="telemetry has no partition 2 any more"):
        planner.latestOffset({"0": 1, "1": 0, "2": 4}, ReadAllAvailable())


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
    planner = TopicStreamReader(options(host.bootstrap))

    during = planner.latestOffset({"0": 0, "1": 0}, ReadAllAvailable())
    producer.abort_transaction()
    after = planner.latestOffset(during, ReadAllAvailable())
    found = [each.offset for chunk in planner.topic.read(OffsetRange(0, 3, 7)) for each in chunk]

    assert (during, after, found) == ({"0": 3, "1": 0}, {"0": 7, "1": 0}, [4, 5])


def test_a_dataset_that_started_at_the_end_reads_a_later_partition_from_its_start(
    host: RunningHost, tmp_path: Path
) -> None:
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create()
    found = options(host.bootstrap, rows="manifests", dataset=dataset.root, startingOffsets="latest")
    fill(host.bootstrap, records(10, partitions=2))
    first = TopicStreamReader(found).initialOffset()
    topics = host.host.broker.topics
    telemetry = topics.named(TOPIC)
    assert telemetry is not None
    host.call(lambda: topics.grow(telemetry, 3))
    TopicStreamReader(found).topic.partitions()
    fill(host.bootstrap, [each._replace(partition=2) for each in records(4)])

    again = TopicStreamReader(found).initialOffset()

    assert first == {"0": 5, "1": 5}
    assert again == {"0": 5, "1": 5, "2": 0}


def test_batches_follow_each_other_up_to_the_end_at_the_start(host: RunningHost) -> None:
    fill(host.bootstrap, records(400, partitions=2))
    planner = TopicStreamReader(options(host.bootstrap))
    planner.prepareForTriggerAvailableNow()
    fill(host.bootstrap, records(100, first=400, partitions=2))
    at, read = planner.initialOffset(), []

    while (end := planner.latestOffset(at, ReadMaxBytes(10_000))) != at:
        read.append(ranges(from_json(at), from_json(end)))
        at = end

    assert len(read) > 5
    assert at == {"0": 200, "1": 200}
    assert planner.reportLatestOffset() == {"0": 250, "1": 250}


def test_an_added_partition_is_read_from_its_start(host: RunningHost) -> None:
    fill(host.bootstrap, records(10, partitions=2))
    planner = TopicStreamReader(options(host.bootstrap))
    at = planner.latestOffset(planner.initialOffset(), ReadAllAvailable())
    topics = host.host.broker.topics
    telemetry = topics.named(TOPIC)
    assert telemetry is not None
    host.call(lambda: topics.grow(telemetry, 3))
    planner.topic.partitions()
    fill(host.bootstrap, [each._replace(partition=2) for each in records(4)])

    end = planner.latestOffset(at, ReadAllAvailable())
    pieces = planner.partitions(at, end)

    assert end == {"0": 5, "1": 5, "2": 4}
    assert [each.ranges for each in pieces if isinstance(each, Piece)] == [(OffsetRange(2, 0, 4),)]


def test_a_small_batch_of_several_partitions_is_one_task_with_one_file_per_table(
    host: RunningHost, tmp_path: Path
) -> None:
    fill(host.bootstrap, records(11, partitions=2))
    given = options(host.bootstrap, rows="manifests", dataset=str(tmp_path / "data"))

    (piece,) = TopicStreamReader(given).partitions({"0": 0, "1": 0}, {"0": 6, "1": 5})
    (batch,) = read_piece(given, piece)

    rows = batch.to_pylist()
    reports = [json.loads(row["body"]) for row in rows if row["kind"] == "range"]
    assert [(each["partition"], each["start"], each["end"], each["pushes"]) for each in reports] == [
        (0, 0, 6, 6),
        (1, 0, 5, 5),
    ]
    files = [json.loads(row["body"]) for row in rows if row["kind"] == "file"]
    assert [(each["table"], each["rows"]) for each in files] == [("points", 33), ("pushes", 11)]


def test_an_empty_trigger_does_not_look_at_the_tables(host: RunningHost, tmp_path: Path) -> None:
    fill(host.bootstrap, records(4, partitions=2))
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create()
    planner = TopicStreamReader(options(host.bootstrap, rows="manifests", dataset=dataset.root))
    end = planner.latestOffset(planner.initialOffset(), ReadAllAvailable())
    followed(dataset.root).opened.clear()

    idle = planner.latestOffset(end, ReadAllAvailable())

    assert idle == end
    assert not followed(dataset.root).opened


def test_the_start_of_a_dataset_does_not_move(host: RunningHost, tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create()
    found = options(host.bootstrap, rows="manifests", dataset=dataset.root)
    fill(host.bootstrap, records(10))
    first = TopicStreamReader(found).initialOffset()

    delete_until(host, 0, 5)
    again = TopicStreamReader(found).initialOffset()

    assert first == again
    assert again["0"] == 0


def test_a_trigger_waits_for_enough_records_except_at_the_end(host: RunningHost) -> None:
    fill(host.bootstrap, records(10, partitions=2))
    planner = TopicStreamReader(options(host.bootstrap, minBytesPerTrigger="1000000"))
    at = planner.initialOffset()

    waiting = planner.latestOffset(at, ReadAllAvailable())
    planner.prepareForTriggerAvailableNow()
    last = planner.latestOffset(at, ReadAllAvailable())

    assert waiting == at
    assert last == {"0": 5, "1": 5}
