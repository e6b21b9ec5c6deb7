"""Ingest with a session: every record of the topic is in the tables once, whatever happens to checkpoint or
host.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from faulty_sink import FaultySource, plan
from google.protobuf import json_format
from ingested import every, is_exactly, offsets, rows, settings, until
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_topics import TOPIC, fill, payload, records

import odradek.testing
import odradek_spark
from odradek.testing import RunningHost
from odradek.topic import TopicFormat
from odradek_spark.ingest import run as run_module
from odradek_spark.ingest.failures import IngestFailed
from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.jobs.accepted import accepted
from odradek_spark.jobs.verify import run_verify
from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.schemas import POINTS, PUSHES
from pyspark_odradek import DefaultSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
PATIENCE_S = 150.0
"""For the first batch of a query, which starts six processes of Python."""


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, 2)
        yield running


@pytest.fixture(autouse=True)
def retry_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "BACKOFF_S", 0.1)


@pytest.fixture
def stop() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def once(spark: SparkSession, given: IngestSettings) -> list[str]:
    """Ingest the whole topic; return the messages."""
    said: list[str] = []
    run_ingest(spark, given, once=True, say=said.append)
    return said


def delete_until(host: RunningHost, partition: int, offset: int) -> None:
    log = host.host.broker.topics.log(TOPIC, partition)

    def delete() -> None:
        log.roll(host.host.clock.now_ms())
        log.delete_records(offset)

    host.call(delete)


def test_every_record_is_in_the_tables_once(spark: SparkSession, host: RunningHost, tmp_path: Path) -> None:
    given = settings(host.bootstrap, tmp_path / "d", max_bytes_per_trigger=2_000)
    fill(host.bootstrap, records(40, partitions=2))
    once(spark, given)
    fill(host.bootstrap, records(5, first=40, partitions=2))

    once(spark, given)
    once(spark, given)

    assert is_exactly(tmp_path / "d", every(45, 2))
    by_value = rows(tmp_path / "d", "points", "value")
    assert by_value == sorted((number + index / 10,) for number in range(45) for index in range(3))


def test_a_batch_reads_points_and_records(spark: SparkSession, host: RunningHost, tmp_path: Path) -> None:
    sent = records(20, partitions=2)
    fill(host.bootstrap, sent)
    once(spark, settings(host.bootstrap, tmp_path / "d"))
    given = {"kafka.bootstrap.servers": host.bootstrap, "subscribe": TOPIC}
    source = spark.read.format("odradek").options(**given).load()

    points = odradek_spark.points(source)
    raw = source.orderBy("offset", "partition").collect()

    table = load_dataset(spark, str(tmp_path / "d"))
    assert points.columns == table.columns == POINTS.schema.names
    assert points.exceptAll(table).count() == table.exceptAll(points).count() == 0
    assert points.count() == 60
    assert [bytes(row["value"]) for row in raw] == [each.value for each in sent]
    assert [(row["key"], len(row["headers"])) for row in raw] == [
        (each.key, len(each.headers)) for each in sent
    ]


def test_a_record_that_cannot_be_decoded_is_a_dead_letter(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    good = records(2)
    poison = good[0]._replace(value=b"\xff\xff\xff")
    foreign = TopicRecord(0, 0, 0, None, b"order 66", [])
    tombstone = good[0]._replace(value=None)
    large = good[0]._replace(value=good[0].value * 1_000 if good[0].value else None)

    fill(host.bootstrap, [good[0], poison, foreign, tombstone, large, good[1]])
    once(spark, settings(host.bootstrap, tmp_path / "d", max_payload_bytes=10_000))

    assert offsets(tmp_path / "d") == [(0, 0), (0, 5)]
    dead = rows(tmp_path / "d", "dead_letter", "src_offset", "reason", "bytes")
    assert [each[0] for each in dead] == [1, 2, 3, 4]
    assert dead[0][2] == b"\xff\xff\xff"
    assert "the limit is 10000" in dead[3][1]


def test_a_topic_of_a_collector_is_in_the_tables_once(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    clients = MetricsData.FromString(payload(1) + payload(2))
    for number, entry in enumerate(clients.resource_metrics):
        entry.resource.attributes.add(key="service.name").value.string_value = f"service-{number}"
    text = json_format.MessageToJson(clients, use_integers_for_enums=True)
    sent = [TopicRecord(0, 0, 0, None, each, []) for each in (text.encode(), b"[]", text.encode())]
    fill(host.bootstrap, sent)

    once(spark, settings(host.bootstrap, tmp_path / "d", topic_format=TopicFormat.OTLP_JSON))

    root = str(tmp_path / "d")
    report = run_verify(spark, root)
    pushes, points = load_dataset(spark, root, "pushes"), load_dataset(spark, root, "points")
    assert (report.pushes, report.points, report.dead_letters, report.faults) == (4, 12, 1, [])
    assert sorted(rows(tmp_path / "d", "pushes", "client_id", "src_offset")) == [
        ("service-0", 0),
        ("service-0", 2),
        ("service-1", 0),
        ("service-1", 2),
    ]
    counting = accepted(points, pushes).groupBy("client_id").count().collect()
    assert sorted(tuple(row) for row in counting) == [("service-0", 3), ("service-1", 3)]


def test_a_damaged_checkpoint_loses_nothing_when_it_is_deleted(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    given = settings(host.bootstrap, tmp_path / "d")
    checkpoint = Path(given.checkpoint_location)
    fill(host.bootstrap, records(10, partitions=2))
    once(spark, given)

    for count, damage in enumerate(("cut offsets", "commits", "empty metadata"), 1):
        fill(host.bootstrap, records(10, first=10 * count, partitions=2))
        spoil(checkpoint, damage)
        with pytest.raises(
            IngestFailed, match=rf"the checkpoint {checkpoint} is damaged: delete that folder"
        ):
            once(spark, given)
        shutil.rmtree(checkpoint)
        once(spark, given)

        assert is_exactly(tmp_path / "d", every(10 + 10 * count, 2)), damage


def spoil(checkpoint: Path, damage: str) -> None:
    """Damage a checkpoint as disks and users do."""
    for checksum in checkpoint.rglob(".*.crc"):
        checksum.unlink()
    what = damage.rpartition(" ")[2]
    target = checkpoint / what if what == "metadata" else checkpoint / what / "0"
    target.write_text("" if "empty" in damage else target.read_text()[:20] if "cut" in damage else "v1\n{x")


def test_a_checkpoint_of_another_source_is_refused(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    given = settings(host.bootstrap, tmp_path / "d")
    fill(host.bootstrap, records(10, partitions=2))
    once(spark, given)
    offsets_of_spark = Path(given.checkpoint_location) / "offsets"
    for checksum in offsets_of_spark.glob(".*.crc"):
        checksum.unlink()
    (last,) = offsets_of_spark.iterdir()
    version, metadata, _ = last.read_text().splitlines()
    last.write_text(f'{version}\n{metadata}\n{{"other":{{"0":5,"1":5}}}}')
    fill(host.bootstrap, records(10, first=10, partitions=2))

    with pytest.raises(IngestFailed, match=r"the checkpoint holds .* or belongs to another source"):
        once(spark, given)
    shutil.rmtree(given.checkpoint_location)
    once(spark, given)

    assert is_exactly(tmp_path / "d", every(20, 2))


def test_a_checkpoint_of_another_dataset_is_refused(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    other = settings(host.bootstrap, tmp_path / "other", checkpoint=str(tmp_path / "checkpoint"))
    given = settings(host.bootstrap, tmp_path / "d", checkpoint=str(tmp_path / "checkpoint"))
    fill(host.bootstrap, records(10, partitions=2))
    once(spark, other)
    fill(host.bootstrap, records(10, first=10, partitions=2))

    with pytest.raises(IngestFailed, match="it belongs to another dataset"):
        once(spark, given)
    shutil.rmtree(tmp_path / "checkpoint")
    once(spark, given)

    assert is_exactly(tmp_path / "d", every(20, 2))


def test_a_dataset_can_have_any_name(spark: SparkSession, host: RunningHost, tmp_path: Path) -> None:
    root = tmp_path / "Ä b'(1) 5+c"
    for count in range(2):
        fill(host.bootstrap, records(10, first=10 * count, partitions=2))
        once(spark, settings(host.bootstrap, root))

    assert is_exactly(root, every(20, 2))
    assert load_dataset(spark, str(root)).count() == 60


@pytest.fixture
def faulty(spark: SparkSession) -> Iterator[None]:
    """Commits fail as `faulty_sink.plan` says."""
    spark.dataSource.register(FaultySource)
    yield
    spark.dataSource.register(DefaultSource)


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("tables_before", [1, 3])
def test_a_batch_in_some_tables_is_completed_without_its_checkpoint(
    spark: SparkSession, host: RunningHost, tmp_path: Path, tables_before: int
) -> None:
    given = settings(host.bootstrap, tmp_path / "d")
    fill(host.bootstrap, records(10, partitions=2))
    once(spark, given)
    fill(host.bootstrap, records(10, first=10, partitions=2))
    plan(tmp_path / "d", tables_before, "no more", 1)

    with pytest.raises(IngestFailed, match="no more"):
        once(spark, given)
    shutil.rmtree(given.checkpoint_location)
    fill(host.bootstrap, records(10, first=20, partitions=2))
    once(spark, given)

    assert is_exactly(tmp_path / "d", every(30, 2))


def test_a_second_ingester_is_refused(spark: SparkSession, host: RunningHost, tmp_path: Path) -> None:
    first = settings(host.bootstrap, tmp_path / "d")
    second = settings(host.bootstrap, tmp_path / "d", checkpoint=str(tmp_path / "other"))
    for count, given in enumerate((first, second)):
        fill(host.bootstrap, records(10, first=10 * count, partitions=2))
        once(spark, given)
    fill(host.bootstrap, records(10, first=20, partitions=2))

    with pytest.raises(IngestFailed, match="another ingester writes to this dataset"):
        once(spark, first)
    once(spark, second)

    assert is_exactly(tmp_path / "d", every(30, 2))


def test_records_lost_to_retention_are_an_error_or_counted(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    fill(host.bootstrap, records(10))
    once(spark, settings(host.bootstrap, tmp_path / "d"))
    fill(host.bootstrap, records(10, first=10))
    delete_until(host, 0, 15)

    with pytest.raises(IngestFailed, match=r"telemetry-0: offsets 10 to 14 were deleted by retention"):
        once(spark, settings(host.bootstrap, tmp_path / "d"))
    once(spark, settings(host.bootstrap, tmp_path / "d", fail_on_data_loss=False))
    fill(host.bootstrap, records(2, first=20))
    once(spark, settings(host.bootstrap, tmp_path / "d", fail_on_data_loss=False))

    assert is_exactly(tmp_path / "d", [(0, at) for at in (*range(10), *range(15, 22))])
    history = Dataset(str(tmp_path / "d")).existing(POINTS).history()
    assert [each["lost"] for each in history if "lost" in each] == ["0", "5", "0"]


def test_ingest_survives_new_partitions_and_a_host_restart(
    spark: SparkSession, tmp_path: Path, stop: threading.Event
) -> None:
    said: list[str] = []
    with odradek.testing.host(data_dir=tmp_path / "h") as host:
        host.topics.create(TOPIC, 1)
        fill(host.bootstrap, records(5))
        listener = f"PLAINTEXT://{host.bootstrap}"
        given = settings(
            host.bootstrap,
            tmp_path / "d",
            trigger_ms=200,
            client={"topic.metadata.refresh.interval.ms": "500"},
        )

        def ingest() -> None:
            # Spark finds a Python source only in a thread with an active session, which this sets
            spark.createDataFrame([], "n int")
            run_ingest(spark, given, once=False, stop=stop, say=said.append)

        ingesting = threading.Thread(target=ingest, daemon=True)
        ingesting.start()
        until(lambda: bool(said) or Dataset(given.dataset).open(PUSHES) is not None, PATIENCE_S)
        assert said == []
        until(lambda: is_exactly(tmp_path / "d", every(5)), PATIENCE_S)
        topics = host.host.broker.topics
        telemetry = topics.named(TOPIC)
        assert telemetry is not None
        host.call(lambda: topics.grow(telemetry, 2))
        fill(host.bootstrap, [each._replace(partition=1) for each in records(3)])
        until(lambda: (1, 2) in offsets(tmp_path / "d"), PATIENCE_S)
    with odradek.testing.host(data_dir=tmp_path / "h", listeners=listener) as host:
        fill(host.bootstrap, records(4, first=5))
        until(lambda: (0, 8) in offsets(tmp_path / "d"), PATIENCE_S)
        stop.set()
        ingesting.join(60)

    assert not ingesting.is_alive()
    assert is_exactly(tmp_path / "d", sorted([*every(9), (1, 0), (1, 1), (1, 2)]))


@pytest.mark.usefixtures("faulty")
def test_a_store_that_fails_for_a_while_is_retried(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    fill(host.bootstrap, records(10, partitions=2))
    plan(tmp_path / "d", 0, "No space left on device", 2)

    said = once(spark, settings(host.bootstrap, tmp_path / "d"))

    assert said == [
        "OSError: [Errno 28] No space left on device; trying again in 0.1 s",
        "OSError: [Errno 28] No space left on device; trying again in 0.2 s",
    ]
    assert is_exactly(tmp_path / "d", every(10, 2))


@pytest.mark.usefixtures("faulty")
def test_a_store_that_stays_full_ends_a_run_with_once(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    fill(host.bootstrap, records(10, partitions=2))
    plan(tmp_path / "d", 0, "No space left on device", 99)

    with pytest.raises(IngestFailed, match="No space left on device"):
        once(spark, settings(host.bootstrap, tmp_path / "d"))


def test_a_wrong_topic_or_option_is_reported(spark: SparkSession, host: RunningHost, tmp_path: Path) -> None:
    nowhere = IngestSettings(bootstrap_servers=host.bootstrap, dataset=str(tmp_path / "d"), topic="nope")
    bogus = settings(host.bootstrap, tmp_path / "d", client={"bogus": "1"})

    with pytest.raises(IngestFailed, match=r"^topic nope: .*Unknown topic[^\n]*$"):
        once(spark, nowhere)
    with pytest.raises(IngestFailed, match=r'^kafka options: No such configuration property: "bogus"$'):
        once(spark, bogus)
