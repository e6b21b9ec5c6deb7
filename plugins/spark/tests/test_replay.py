"""Replay: records of the topic that are missing from the tables are added, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from spark_topics import TOPIC, fill, options
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest

import odradek.testing
from odradek.testing import RunningHost
from odradek_spark.jobs import replay
from odradek_spark.jobs.replay import Replayed, ranges_since, run_replay
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.topic import DataLoss
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.decoder.decode import Decoder, DecoderSettings
from odradek_tables.files import write_files
from odradek_tables.following import REPLAY, joined
from odradek_tables.log import live
from odradek_tables.schemas import DEAD_LETTER, INGESTED, POINTS, PUSHES, ROLLUP_5M

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SMALL = 150
"""Larger payloads are dead letters to a decoder that is too strict."""


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, 1, segment_bytes=1 << 20)
        yield running


@pytest.fixture
def pushes() -> list[Told]:
    """Small pushes, and two large ones at offsets 3 and 4."""
    found = [gauge(Told(30.0 * number), float(number)) for number in range(8)]
    for large in (3, 4):
        found[large] = gauge(gauge(found[large], 1.0, "m", text="x" * SMALL), 2.0, "n")
    return found


@pytest.fixture
def dataset(tmp_path: Path, host: RunningHost, pushes: list[Told]) -> Dataset:
    """The whole topic, ingested by a decoder that made the large ones dead letters."""
    fill(host.bootstrap, [each.record(offset) for offset, each in enumerate(pushes)])
    made = Dataset(str(tmp_path / "dataset"))
    strict = Decoder(DecoderSettings(max_payload_bytes=SMALL))
    ingest(made, pushes, 0, decoder=strict, topic=TOPIC)
    return made


def offsets(dataset: Dataset, table: object = POINTS) -> list[int]:
    assert table in INGESTED
    return sorted(dataset.existing(table).to_pyarrow_table()["src_offset"].to_pylist())


def test_single_offsets_are_combined_into_ranges() -> None:
    spans = [(0, 3, 4), (1, 7, 8), (0, 4, 5), (0, 6, 7)]

    assert joined(spans) == [(0, 3, 5), (0, 6, 7), (1, 7, 8)]


def test_dead_letters_that_can_be_decoded_now_become_points(
    spark: SparkSession, dataset: Dataset, host: RunningHost
) -> None:
    from odradek_spark.jobs.verify import run_verify

    dead = offsets(dataset, DEAD_LETTER)

    done = run_replay(spark, dataset.root, options(host.bootstrap))

    assert (dead, done.decoded.records) == ([3, 4], 2)
    assert done.added == {"points": 6, "histograms": 0, "dead_letter": 0, "pushes": 2}
    assert offsets(dataset, PUSHES) == list(range(8))
    assert run_verify(spark, dataset.root).faults == []
    assert run_replay(spark, dataset.root, options(host.bootstrap)) == Replayed()


def test_dead_letters_that_still_fail_are_not_doubled(
    spark: SparkSession, dataset: Dataset, host: RunningHost
) -> None:
    strict = DecoderSettings(max_payload_bytes=SMALL)

    done = run_replay(spark, dataset.root, options(host.bootstrap), decoding=strict)

    assert (done.decoded.records, done.decoded.dead_letters, done.decoded.batches) == (2, 2, 0)
    assert sum(done.added.values()) == 0
    assert offsets(dataset, DEAD_LETTER) == [3, 4]


def test_only_missing_rows_are_added(spark: SparkSession, dataset: Dataset, host: RunningHost) -> None:
    from odradek_spark.jobs.verify import run_verify

    rows = dataset.existing(POINTS).to_pyarrow_table()
    kept = rows.filter(~pc.field("src_offset").isin([1, 6])).cast(POINTS.schema)
    dataset.exchange(
        POINTS, live(dataset.existing(POINTS)), write_files(dataset.root, POINTS, kept), data_change=True
    )
    before = run_verify(spark, dataset.root)

    strict = DecoderSettings(max_payload_bytes=SMALL)
    wanted = [OffsetRange(0, 0, 8)]
    done = run_replay(spark, dataset.root, options(host.bootstrap), wanted, decoding=strict)

    assert len(before.faults) == 2
    assert done.added == {"points": 2, "histograms": 0, "dead_letter": 0, "pushes": 0}
    assert run_verify(spark, dataset.root).faults == []


def test_an_interrupted_replay_is_repeated_and_waited_for(
    spark: SparkSession, dataset: Dataset, host: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odradek_spark.jobs.rollup import run_rollup
    from odradek_spark.jobs.verify import run_verify

    run_rollup(spark, dataset.root, ROLLUP_5M)
    commit = Dataset.commit_next

    def failing(self: Dataset, table: object, *arguments: object) -> bool:
        if table is PUSHES:
            raise OSError("no more")
        return commit(self, table, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "commit_next", failing)
        with pytest.raises(OSError, match="no more"):
            run_replay(spark, dataset.root, options(host.bootstrap))
    waiting = run_rollup(spark, dataset.root, ROLLUP_5M)

    again = run_replay(spark, dataset.root, options(host.bootstrap))

    rolled = run_rollup(spark, dataset.root, ROLLUP_5M)
    assert waiting is None
    assert again.added == {"points": 0, "histograms": 0, "dead_letter": 0, "pushes": 2}
    assert rolled is not None
    assert rolled.points == 6
    assert run_verify(spark, dataset.root).faults == []


def test_records_that_ingest_has_not_read_are_left_to_it(
    spark: SparkSession, dataset: Dataset, host: RunningHost
) -> None:
    with pytest.raises(DatasetError, match="the range ends at offset 9, but ingest has only reached 8"):
        run_replay(spark, dataset.root, options(host.bootstrap), [OffsetRange(0, 5, 9)])


def test_records_lost_to_retention_are_named(
    spark: SparkSession, dataset: Dataset, host: RunningHost
) -> None:
    log = host.host.broker.topics.log(TOPIC, 0)

    def delete() -> None:
        log.roll(host.host.clock.now_ms())
        log.delete_records(4)

    host.call(delete)

    with pytest.raises(DataLoss, match="offsets 3 to 3 were deleted"):
        run_replay(spark, dataset.root, options(host.bootstrap))
    lenient = run_replay(spark, dataset.root, options(host.bootstrap, failOnDataLoss="false"))

    assert lenient.added["pushes"] == 1


def test_each_range_is_decoded_once_and_each_wave_is_committed(
    spark: SparkSession, dataset: Dataset, host: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odradek_spark.jobs.verify import run_verify

    monkeypatch.setattr("odradek_spark.jobs.replay.TASK_BYTES", 1)  # a task for each record
    monkeypatch.setattr("odradek_spark.jobs.replay.WAVE_ROUNDS", 1)
    shown: list[tuple[int, int, int]] = []
    before = dataset.existing(PUSHES).version()

    done = run_replay(
        spark,
        dataset.root,
        options(host.bootstrap),
        [OffsetRange(0, 2, 7)],
        lambda decoded, waiting: shown.append((decoded.records, decoded.points, waiting)),
    )

    assert shown == [(2, 4, 3), (4, 8, 1), (5, 9, 0)]
    assert done.added == {"points": 6, "histograms": 0, "dead_letter": 0, "pushes": 2}
    assert dataset.existing(PUSHES).version() == before + 2  # the last wave had nothing to add
    assert run_verify(spark, dataset.root).faults == []


def test_records_received_since_a_time_can_be_replayed(
    spark: SparkSession, tmp_path: Path, host: RunningHost, pushes: list[Told]
) -> None:
    from odradek_spark.jobs.verify import run_verify

    made = Dataset(str(tmp_path / "late"))
    producer = Producer({"bootstrap.servers": host.bootstrap, "enable.metrics.push": False})
    for offset, each in enumerate(pushes):
        found = each.record(offset)
        headers = [*found.headers]
        producer.produce(TOPIC, found.value, found.key, 0, timestamp=found.timestamp_ms, headers=headers)
    assert producer.flush(20) == 0
    made.create()
    # it starts late
    ingest(made, pushes[6:], 6, topic=TOPIC)
    asked = options(host.bootstrap)
    since = datetime.fromtimestamp(MIDNIGHT_S + 45, UTC)  # between the second and the third

    wanted = ranges_since(made.root, asked, since)
    run_replay(spark, made.root, asked, wanted)

    assert wanted == [OffsetRange(0, 2, 8)]
    assert offsets(made, PUSHES) == [2, 3, 4, 5, 6, 7]
    assert run_verify(spark, made.root).faults == []
    assert ranges_since(made.root, asked, datetime.fromtimestamp(MIDNIGHT_S + 9999, UTC)) == []


def test_a_second_replay_is_noticed(
    spark: SparkSession, dataset: Dataset, host: RunningHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = replay.commit

    def beaten(*arguments: Any) -> None:
        dataset.commit_next(POINTS, [], REPLAY, None, 1)
        commit(*arguments)

    monkeypatch.setattr(replay, "commit", beaten)

    with pytest.raises(DatasetError, match="another replay is running"):
        run_replay(spark, dataset.root, options(host.bootstrap))
