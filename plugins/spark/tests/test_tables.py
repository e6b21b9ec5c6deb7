"""Files, manifests and commits of a dataset, and its readers."""

from __future__ import annotations

import json
import os
import random
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_dataset import TOPIC, commit_ranges
from spark_payloads import RECEIVED_MS, TIME_NS, metrics_data, topic_record

from odradek_spark.load import live_files
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.decoder.decode import Decoded, Decoder
from odradek_tables.files import TableFiles, write_files
from odradek_tables.log import first_version
from odradek_tables.schemas import INGESTED, POINTS, PUSHES

RECEIVED = datetime.fromtimestamp(RECEIVED_MS / 1000, UTC)


def gauges(*names: str) -> bytes:
    """A payload with one point for each name."""
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for name in names:
        metrics.add(name=name).gauge.data_points.add(time_unix_nano=TIME_NS, as_double=1.5)
    return data.SerializeToString()


def decoded(*payloads: bytes) -> Decoded:
    return Decoder().decode([topic_record(payload, offset) for offset, payload in enumerate(payloads)])


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "dataset"))
    made.create()
    return made


def commit(dataset: Dataset, rows: Decoded, version: int = 0) -> None:
    for table in INGESTED:
        files = write_files(dataset.root, table, dict(rows.batches())[table.name])
        commit_ranges(dataset, table, files, {0: (10 * version, 10 * (version + 1))})


def test_rows_are_partitioned_by_receive_time_and_family(dataset: Dataset) -> None:
    payload = gauges("org.apache.kafka.producer.a", "mine", "org.apache.kafka.producer.b")

    files = write_files(dataset.root, POINTS, decoded(payload).points)

    folder = f"date={RECEIVED:%Y-%m-%d}/hour={RECEIVED.hour}"
    assert {file.path.rpartition("/")[0]: file.rows for file in files} == {
        f"{folder}/family=producer": 2,
        f"{folder}/family=other": 1,
    }


def test_a_manifest_describes_its_file(dataset: Dataset) -> None:
    (file,) = write_files(dataset.root, POINTS, decoded(gauges("a"), gauges("b")).points)

    stats = json.loads(file.stats)
    assert (stats["numRecords"], stats["minValues"]["src_offset"], stats["maxValues"]["src_offset"]) == (
        2,
        0,
        1,
    )
    assert stats["minValues"]["ts"] <= stats["maxValues"]["ts"]
    assert (Path(dataset.root) / "points" / file.path).stat().st_size == file.file_bytes


def test_bounds_of_a_file_are_no_narrower_than_its_rows(dataset: Dataset) -> None:
    data = MetricsData.FromString(gauges("a"))
    point = data.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0]
    point.time_unix_nano += 1_500  # one and a half microseconds
    (file,) = write_files(dataset.root, POINTS, decoded(data.SerializeToString()).points)

    stats = json.loads(file.stats)

    assert stats["maxValues"]["ts"] > stats["minValues"]["ts"]


READ_EVERYWHERE = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}
"""Encodings of Parquet that each reader of the documents knows, with default settings."""


def test_files_are_plain_parquet(dataset: Dataset) -> None:
    (file,) = write_files(dataset.root, POINTS, decoded(gauges("a")).points)

    found = pq.ParquetFile(Path(dataset.root) / "points" / file.path)

    assert found.schema_arrow.names == POINTS.file_schema.names
    assert found.schema_arrow.field("recv_ts").type == POINTS.schema.field("recv_ts").type
    group = found.metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert {name for column in columns for name in column.encodings} <= READ_EVERYWHERE
    assert not any("nano" in str(column.logical_type) for column in found.schema)


def test_files_of_earlier_versions_are_read_beside_newer_ones(dataset: Dataset) -> None:
    rows = decoded(gauges("a")).points
    (file,) = write_files(dataset.root, POINTS, rows)
    path = Path(dataset.root) / "points" / file.path
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"value": "BYTE_STREAM_SPLIT"}}
    pq.write_table(pq.read_table(path, partitioning=None), path, compression="zstd", **options)
    dataset.commit_next(POINTS, [replace(file, file_bytes=path.stat().st_size)], "ingest", None, 0)
    dataset.commit_next(POINTS, write_files(dataset.root, POINTS, rows), "ingest", 0, 1)

    both = dataset.existing(POINTS).to_pyarrow_table()["value"].to_pylist()

    assert len(both) == 2
    assert both[0] == both[1]


def test_no_row_is_visible_before_the_commit(dataset: Dataset) -> None:
    rows = decoded(gauges("a"))
    files = write_files(dataset.root, POINTS, rows.points)

    before = live_files(dataset, POINTS)
    dataset.commit_next(POINTS, files, "ingest", None, 0)

    assert (before, len(live_files(dataset, POINTS))) == ([], 1)


def test_a_repeated_batch_is_already_committed(dataset: Dataset) -> None:
    first = write_files(dataset.root, POINTS, decoded(gauges("a")).points)
    again = write_files(dataset.root, POINTS, decoded(gauges("a")).points)

    outcomes = [dataset.commit_next(POINTS, files, "ingest", None, 7) for files in (first, again, again)]

    assert outcomes == [True, False, False]
    assert [file.rpartition("/")[2] for file in live_files(dataset, POINTS)] == [
        first[0].path.rpartition("/")[2]
    ]
    assert dataset.commit_next(POINTS, [], "ingest", None, 6) is False
    assert dataset.committed(POINTS, "ingest") == 7


def test_of_committers_of_one_batch_one_wins(dataset: Dataset) -> None:
    files = [write_files(dataset.root, POINTS, decoded(gauges("a")).points) for _ in range(6)]

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda each: dataset.commit_next(POINTS, each, "ingest", None, 1), files))

    assert sorted(outcomes) == [False] * 5 + [True]
    assert len(live_files(dataset, POINTS)) == 1


def test_committers_of_different_batches_all_succeed(dataset: Dataset) -> None:
    files = [write_files(dataset.root, POINTS, decoded(gauges("a")).points) for _ in range(6)]

    with ThreadPoolExecutor(6) as pool:
        commits = [
            pool.submit(dataset.commit_next, POINTS, each, f"app-{number}", None, 0)
            for number, each in enumerate(files)
        ]

    assert [each.result() for each in commits] == [True] * 6
    assert len(live_files(dataset, POINTS)) == 6


def test_a_table_knows_its_end_offsets(dataset: Dataset) -> None:
    assert dataset.source_offsets(PUSHES, TOPIC, [0, 1]) == {}

    commit(dataset, decoded(gauges("a")), 0)
    commit(dataset, decoded(gauges("a")), 1)
    dataset.commit_next(PUSHES, [], "maintenance", None, 0)

    assert dataset.source_offsets(PUSHES, TOPIC, [0, 1]) == {0: 20}


def test_committed_ranges_are_not_committed_again(dataset: Dataset) -> None:
    files = write_files(dataset.root, POINTS, decoded(gauges("a")).points)

    outcomes = [commit_ranges(dataset, POINTS, files, {0: (0, 10), 1: (0, 4)}) for _ in range(2)]

    assert outcomes == [True, False]
    assert len(live_files(dataset, POINTS)) == 1


def test_a_dataset_reads_the_same_everywhere(dataset: Dataset) -> None:
    payloads = [metrics_data(random.Random(seed)).SerializeToString() for seed in range(40)]
    rows = decoded(*payloads)
    commit(dataset, rows)
    expected = (rows.points.num_rows, sum(rows.points["src_offset"].to_pylist()))
    uri = f"{dataset.root}/points"

    opened = dataset.open(POINTS)
    assert opened is not None
    by_delta = opened.to_pyarrow_table()
    by_polars = pl.scan_delta(uri).select(pl.len(), pl.col("src_offset").sum()).collect()
    files = live_files(dataset, POINTS)
    query = "select count(*), sum(src_offset) from read_parquet($files, hive_partitioning = true)"
    by_duckdb = duckdb.execute(query, {"files": files}).fetchall()

    assert (by_delta.num_rows, sum(by_delta["src_offset"].to_pylist())) == expected
    assert by_polars.row(0) == expected
    assert by_duckdb == [expected]


def test_days_outside_the_time_are_skipped(dataset: Dataset) -> None:
    commit(dataset, decoded(gauges("a")))
    day = timedelta(days=1)

    assert live_files(dataset, POINTS, since=RECEIVED + 2 * day) == []
    assert live_files(dataset, POINTS, until=RECEIVED - 2 * day) == []
    assert len(live_files(dataset, POINTS, since=RECEIVED - day, until=RECEIVED + day)) == 1


def test_days_are_those_of_utc(dataset: Dataset) -> None:
    commit(dataset, decoded(gauges("a")))
    west, east = timezone(-timedelta(hours=20)), timezone(timedelta(hours=20))

    assert len(live_files(dataset, POINTS, until=RECEIVED.astimezone(west))) == 1
    assert len(live_files(dataset, POINTS, since=RECEIVED.astimezone(east))) == 1


def test_a_backlog_of_many_hours_needs_few_open_files(dataset: Dataset) -> None:
    hour_ms, hours = 3_600_000, 300
    found = [topic_record(gauges("a"), at, received_ms=RECEIVED_MS + at * hour_ms) for at in range(hours)]
    rows = Decoder().decode(found).points
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + hours // 2, hard)
    )
    try:
        files = write_files(dataset.root, POINTS, rows)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert len({file.path.rpartition("/")[0] for file in files}) == hours
    assert sum(file.rows for file in files) == hours


def test_files_written_in_vain_are_removed(dataset: Dataset) -> None:
    rows = decoded(gauges("a")).points

    with pytest.raises(OSError, match="full"), TableFiles(dataset.root, POINTS) as files:  # noqa: PT012
        files.write(rows)
        raise OSError("full")

    assert list(Path(dataset.root).rglob("*.parquet")) == []


def test_offsets_survive_the_cleanup_of_the_log(dataset: Dataset) -> None:
    commit_ranges(dataset, POINTS, [], {1: (0, 7)})
    for at in range(25):
        commit_ranges(dataset, POINTS, [], {0: (at, at + 1)})
    log = Path(dataset.root) / "points" / "_delta_log"
    for each in log.iterdir():
        os.utime(each, (0, 0))
    dataset.existing(POINTS).cleanup_metadata()

    oldest = first_version(dataset.uri(POINTS))
    again = [
        commit_ranges(dataset, POINTS, [], ranges) for ranges in ({0: (24, 25)}, {0: (25, 26), 1: (7, 8)})
    ]

    assert oldest > 10
    assert again == [False, True]
    assert dataset.source_offsets(POINTS, TOPIC, [0, 1, 2]) == {0: 26, 1: 8}


def test_a_root_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here already")

    with pytest.raises(DatasetError, match="file/points: cannot be created"):
        Dataset(str(tmp_path / "file")).create()


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="points: no such table"):
        Dataset(str(tmp_path)).existing(POINTS)
