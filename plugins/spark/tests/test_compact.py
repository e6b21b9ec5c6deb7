"""Compaction and retention: the same rows in fewer files, and no file removed that a reader needs."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest, ingest_batches

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.files import Manifest, write_files
from odradek_spark.tables.load import live_files, load_dataset
from odradek_spark.tables.log import LiveFile, live
from odradek_spark.tables.schemas import (
    HISTOGRAMS,
    INGESTED,
    POINTS,
    PUSHES,
    ROLLUP_5M,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR_S = 3600
NOW = datetime.fromtimestamp(MIDNIGHT_S, UTC)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def pushes(hour: int, batch: int) -> list[Told]:
    return [
        gauge(gauge(Told(hour * HOUR_S + 300 * batch + client, client=9 - client), 1.0 * client), 2.0, "mine")
        for client in range(5)
    ]


def hours(dataset: Dataset, count: int, batches: int = 4) -> int:
    """Hours with some batches each; the last one stays open."""
    return ingest_batches(dataset, [pushes(hour, batch) for hour in range(count) for batch in range(batches)])


def keys(dataset: Dataset, table: Table = POINTS) -> list[tuple[Any, ...]]:
    """The offsets and contents of the rows of a table."""
    names = ["src_partition", "src_offset", "client_instance_id", "hour"]
    names += ["src_idx", "name", "value", "ts", "family"] if table is POINTS else []
    rows = dataset.existing(table).to_pyarrow_table(columns=names)
    return sorted(zip(*(rows[name].to_pylist() for name in names), strict=True))


def age(root: str, hours_old: float) -> None:
    """Make every file of a dataset look older."""
    then = time.time() - hours_old * HOUR_S
    for path in Path(root).rglob("*.parquet"):
        os.utime(path, (then, then))


def file(name: str, rows: int = 10, hour: int = 0, family: str = "other") -> LiveFile:
    partition = {"date": "2026-09-22", "hour": str(hour), "family": family}
    folder = "/".join(f"{key}={value}" for key, value in partition.items())
    return LiveFile(f"{folder}/{name}.parquet", rows * 10, rows, partition)


def test_only_closed_folders_are_planned() -> None:
    from odradek_spark.jobs.compact import plan

    files = [file("part-a"), file("part-b"), file("part-c", hour=1), file("part-d", family="consumer")]

    planned = plan(files, NOW + timedelta(hours=1))

    assert [[each.path.rpartition("/")[2] for each in group] for group in planned] == [
        ["part-a.parquet", "part-b.parquet"],
        ["part-d.parquet"],
    ]


def test_a_compacted_folder_is_left_alone_until_it_gets_a_file() -> None:
    from odradek_spark.jobs.compact import TARGET_ROWS, plan

    done = [file("sorted-a"), file("sorted-b", TARGET_ROWS)]

    assert plan(done, NOW + timedelta(hours=1)) == []
    assert plan([*done, file("part-c")], NOW + timedelta(hours=1)) == [[done[0], file("part-c")]]


def test_a_file_does_not_grow_beyond_the_target() -> None:
    from odradek_spark.jobs.compact import TARGET_ROWS, groups

    third = [file(f"part-{number}", TARGET_ROWS // 3) for number in range(7)]

    assert [len(each) for each in groups(third)] == [3, 3, 1]


def test_files_are_merged_in_order(dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import merge_files

    hours(dataset, 1)
    paths = [each.path for each in live(dataset.existing(POINTS)) if each.partition["family"] == "producer"]

    (merged,) = merge_files(dataset.root, POINTS, paths)

    found = pq.ParquetFile(f"{dataset.root}/points/{merged.path}")
    rows = found.read(["client_instance_id", "name", "ts"]).to_pylist()
    assert merged.rows == len(rows) == 20
    assert merged.partition == {"date": "2026-09-22", "hour": "0", "family": "producer"}
    assert [tuple(row.values()) for row in rows] == sorted(tuple(row.values()) for row in rows)
    assert found.schema_arrow.names == POINTS.file_schema.names


@pytest.mark.spark
def test_closed_hours_become_sorted_files_with_the_same_rows(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import COMPACTED, run_compact

    hours(dataset, 3)
    before = {table.name: keys(dataset, table) for table in (POINTS, PUSHES)}

    done = {table.name: run_compact(spark, dataset.root, table) for table in COMPACTED[:4]}

    points = done["points"]
    assert points is not None
    assert (points.files_before, points.files_after) == (16, 4)  # two closed hours, two families
    assert {table.name: keys(dataset, table) for table in (POINTS, PUSHES)} == before
    by_spark = load_dataset(spark, dataset.root).count()
    assert by_spark == len(before["points"])
    assert done["histograms"] is None
    assert run_compact(spark, dataset.root, POINTS) is None


@pytest.mark.spark
def test_late_files_are_merged_into_their_hour(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import run_compact

    end = hours(dataset, 2)
    run_compact(spark, dataset.root, POINTS)
    ingest(dataset, pushes(0, 5), end)

    late = run_compact(spark, dataset.root, POINTS)

    assert late is not None
    assert (late.files_before, late.files_after) == (4, 2)


@pytest.mark.spark
def test_compaction_is_no_new_data_for_the_jobs(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import run_compact
    from odradek_spark.jobs.rollup import merged, rollup, run_rollup

    end = hours(dataset, 2)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    run_compact(spark, dataset.root, POINTS)
    ingest(dataset, pushes(30, 0), end)  # the next day: the day of the rollup is closed
    run_rollup(spark, dataset.root, ROLLUP_5M)
    done = run_compact(spark, dataset.root, ROLLUP_5M)

    rows = load_dataset(spark, dataset.root, "rollup_5m")
    whole = rollup(load_dataset(spark, dataset.root), ROLLUP_5M)
    assert done is not None
    assert sum(row["n"] for row in rows.collect()) == len(keys(dataset))
    columns = [name for name in ROLLUP_5M.schema.names if name != "instances"]
    assert merged(rows, ROLLUP_5M).select(columns).exceptAll(whole.select(columns)).count() == 0


@pytest.mark.spark
def test_ingest_continues_while_hours_are_compacted(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import run_compact
    from odradek_spark.jobs.verify import run_verify

    end = hours(dataset, 2)
    more = [pushes(2, batch) for batch in range(10)]

    def go_on() -> None:
        ingest_batches(dataset, more, end)

    ingesting = threading.Thread(target=go_on)
    ingesting.start()
    done = run_compact(spark, dataset.root, POINTS)
    ingesting.join()

    assert done is not None
    assert len(keys(dataset)) == 2 * (end + 50)
    assert run_verify(spark, dataset.root).faults == []


def test_days_beyond_retention_are_removed(dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_expire

    hours(dataset, 26, batches=1)  # into the second day
    before = keys(dataset)

    kept = run_expire(dataset.root, NOW + timedelta(days=7, hours=23))
    gone = run_expire(dataset.root, NOW + timedelta(days=8))

    assert kept == []
    assert {(each.table, each.before) for each in gone} == {
        ("points", "2026-09-23"),
        ("pushes", "2026-09-23"),
    }
    assert len(keys(dataset)) == len(before) * 2 // 26
    assert run_expire(dataset.root, NOW + timedelta(days=8)) == []


def test_files_of_removed_days_stay_on_disk_for_their_readers(dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_expire, run_vacuum

    hours(dataset, 1)
    held = live_files(dataset, POINTS)
    run_expire(dataset.root, NOW + timedelta(days=9))

    gone = run_vacuum(dataset.root)

    assert set(gone.values()) == {0}
    assert all(Path(each).exists() for each in held)


def test_vacuum_deletes_old_files_that_are_in_no_table(dataset: Dataset) -> None:
    from odradek_spark.decoder.decode import Decoder
    from odradek_spark.jobs.expire import run_vacuum

    hours(dataset, 2)
    rows = Decoder().decode([pushes(0, 9)[0].record(999)]).points
    crashed = [f"{dataset.root}/points/{each.path}" for each in write_files(dataset.root, POINTS, rows)]
    age(dataset.root, 30)
    writing = [f"{dataset.root}/points/{each.path}" for each in write_files(dataset.root, POINTS, rows)]
    before = keys(dataset)

    gone = run_vacuum(dataset.root)

    assert gone["points"] == len(crashed) == 2
    assert not any(Path(each).exists() for each in crashed)
    assert all(Path(each).exists() for each in [*writing, *live_files(dataset, POINTS)])
    assert keys(dataset) == before


@pytest.mark.spark
def test_vacuum_deletes_replaced_files_and_keeps_compacted_ones(
    spark: SparkSession, dataset: Dataset
) -> None:
    from odradek_spark.jobs.compact import run_compact
    from odradek_spark.jobs.expire import run_vacuum

    hours(dataset, 2)
    before = keys(dataset)
    run_compact(spark, dataset.root, POINTS)
    age(dataset.root, 30)

    young = run_vacuum(dataset.root)  # they left the table a moment ago, however old they are

    assert young["points"] == 0
    assert keys(dataset) == before
    assert all(Path(each).exists() for table in INGESTED for each in live_files(dataset, table))


def test_vacuum_refuses_to_delete_recent_files(dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_vacuum

    with pytest.raises(ValueError, match="at least 1 hour, found 0"):
        run_vacuum(dataset.root, hours=0)


def test_a_table_of_histograms_is_compacted_like_any_other(dataset: Dataset) -> None:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    from odradek_spark.jobs.compact import merge_files

    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="h")
    metric.histogram.data_points.add(count=3, sum=1.5, bucket_counts=[1, 2], explicit_bounds=[0.5])
    raw = data.SerializeToString()
    ingest_batches(dataset, [[Told(9, raw=raw)], [Told(5, client=2, raw=raw)]])
    before = dataset.existing(HISTOGRAMS).to_pyarrow_table().sort_by("src_offset").to_pylist()

    (merged,) = merge_files(
        dataset.root, HISTOGRAMS, [each.path for each in live(dataset.existing(HISTOGRAMS))]
    )

    rows = pq.ParquetFile(f"{dataset.root}/histograms/{merged.path}").read().sort_by("src_offset")
    assert [row["counts"] for row in rows.to_pylist()] == [row["counts"] for row in before] == [[1, 2]] * 2


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_a_worker_gives_back_the_memory_of_a_task() -> None:
    from odradek_spark.jobs.writing import Assigned

    def sorts(_: str) -> list[Manifest]:
        rows = pa.array(range(4_000_000))
        rows.take(pc.sort_indices(rows))
        return []

    assigned = pa.RecordBatch.from_pydict({"assignment": ["a", "b"]})
    before = resident_bytes()

    answers = list(Assigned(sorts)([assigned]))

    assert [each.num_rows for each in answers] == [0, 0]
    assert resident_bytes() - before < 32 << 20  # it took 96 MB


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def part(name: str, day: int = 22, rows: int = 10) -> LiveFile:
    return LiveFile(f"date=2026-09-{day}/{name}.parquet", rows * 10, rows, {"date": f"2026-09-{day}"})


def planned_rollup(files: list[LiveFile], at: timedelta) -> list[list[str]]:
    from odradek_spark.jobs.compact import plan_rollup

    groups = plan_rollup(files, NOW + at)
    return [[each.path.rpartition("/")[2].removesuffix(".parquet") for each in group] for group in groups]


def test_each_hour_of_a_rollup_is_added_up_once_it_is_over() -> None:
    files = [part("part-h00-a"), part("part-h00-b"), part("part-h01-c"), part("sorted-h02-d")]

    assert planned_rollup(files, timedelta(hours=1)) == []  # late points may still come
    assert planned_rollup(files, timedelta(hours=1.25)) == [["part-h00-a", "part-h00-b"]]
    assert planned_rollup([*files[2:], part("sorted-h00-e")], timedelta(hours=4)) == [["part-h01-c"]]
    assert planned_rollup([part("sorted-h00-e"), part("part-h00-f")], timedelta(hours=4)) == [
        ["sorted-h00-e", "part-h00-f"]
    ]


def test_a_small_day_of_a_rollup_becomes_one_file_and_a_large_one_keeps_its_hours() -> None:
    from odradek_spark.jobs.compact import TARGET_ROWS

    over = timedelta(hours=25)
    small = [part("sorted-h00-a"), part("sorted-h01-b")]
    large = [part("sorted-h00-a", rows=TARGET_ROWS), part("sorted-h01-b")]
    old = [part("part-a", rows=TARGET_ROWS), part("sorted-h01-b")]

    assert planned_rollup(small, over) == [["sorted-h00-a", "sorted-h01-b"]]
    assert planned_rollup([part("sorted-a")], over) == []
    assert planned_rollup(large, over) == []
    assert planned_rollup(old, over) == [["part-a", "sorted-h01-b"]]  # of an earlier version, without hours


@pytest.mark.spark
def test_a_rollup_has_the_same_sums_after_compaction(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import run_compact
    from odradek_spark.jobs.rollup import ROLLUPS, merged, run_rollup

    end = 0
    for hour in (0, 1, 1, 2, 3):
        end = ingest(dataset, pushes(hour, end), end)
        for each in ROLLUPS:
            run_rollup(spark, dataset.root, each)

    for table in ROLLUPS:
        columns = [name for name in table.schema.names if name != "instances"]
        before = merged(load_dataset(spark, dataset.root, table.name), table).select(columns).collect()

        done = run_compact(spark, dataset.root, table)

        rows = load_dataset(spark, dataset.root, table.name)
        assert done is not None, table.name
        assert done.files_after < done.files_before
        assert sorted(rows.select(columns).collect(), key=repr) == sorted(before, key=repr)
        assert run_compact(spark, dataset.root, table) is None
