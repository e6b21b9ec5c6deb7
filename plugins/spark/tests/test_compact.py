"""Compaction and retention: the same rows in fewer files, and no file removed that a reader needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from telemetry_rows import MIDNIGHT_S, Told, Value, gauge, ingest, ingest_batches

from odradek_spark.jobs.compact import MOST_PARTS, TARGET_ROWS, merged, plan, run_compact
from odradek_spark.load import live_files, load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.files import write_files
from odradek_tables.log import LiveFile, live
from odradek_tables.schemas import (
    HISTOGRAMS,
    INGESTED,
    POINTS,
    PUSHES,
    ROLLUP_5M,
    ROLLUPS,
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


def part(name: str, rows: int = 10) -> LiveFile:
    return LiveFile(f"date=2026-09-22/{name}.parquet", rows * 10, rows, {"date": "2026-09-22"})


def planned(files: list[LiveFile], at: timedelta, *, is_rollup: bool = False) -> list[list[str]]:
    folders = plan(files, NOW + at, is_rollup=is_rollup)
    return [[each.path.rpartition("/")[2].removesuffix(".parquet") for each in found] for found in folders]


def test_only_closed_folders_are_planned() -> None:
    files = [file("part-a"), file("part-b"), file("part-c", hour=1), file("part-d", family="consumer")]

    assert planned(files, timedelta(hours=1)) == [["part-a", "part-b"], ["part-d"]]


def test_a_compacted_folder_is_left_alone_until_it_gets_a_file() -> None:
    done = [file("sorted-a"), file("sorted-b", TARGET_ROWS)]

    assert planned(done, timedelta(hours=1)) == []
    assert planned([*done, file("part-c")], timedelta(hours=1)) == [["sorted-a", "part-c"]]


def test_a_day_of_a_rollup_is_added_up_once_it_is_over_or_has_many_parts() -> None:
    over = timedelta(hours=24.25)
    two, many = [part("part-a"), part("part-b")], [part(f"part-{number}") for number in range(MOST_PARTS)]

    assert planned(two, timedelta(hours=24), is_rollup=True) == []  # late points may still come
    assert planned(two, over, is_rollup=True) == [["part-a", "part-b"]]
    assert planned([part("sorted-a"), part("sorted-b")], over, is_rollup=True) == []
    assert [len(each) for each in planned(many, timedelta(hours=1), is_rollup=True)] == [MOST_PARTS]


def test_files_are_merged_in_order(dataset: Dataset) -> None:
    hours(dataset, 1)
    files = [each for each in live(dataset.existing(POINTS)) if each.partition["family"] == "producer"]

    (new,) = merged(dataset.root, POINTS, files)

    found = pq.ParquetFile(f"{dataset.root}/points/{new.path}")
    rows = found.read(["client_instance_id", "name", "ts"]).to_pylist()
    assert new.rows == len(rows) == 20
    assert new.partition == {"date": "2026-09-22", "hour": "0", "family": "producer"}
    assert [tuple(row.values()) for row in rows] == sorted(tuple(row.values()) for row in rows)
    assert found.schema_arrow.names == POINTS.file_schema.names


def test_a_file_does_not_grow_beyond_the_target(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_spark.jobs.compact.TARGET_ROWS", 4000)
    monkeypatch.setattr("odradek_spark.jobs.compact.GROUP_ROWS", 2048)
    ingest(dataset, [Told(9, tuple(Value("mine", float(number)) for number in range(9000)))], 0)

    new = merged(dataset.root, POINTS, live(dataset.existing(POINTS)))

    assert [each.rows for each in new] == [4096, 4096, 808]


def test_closed_hours_become_sorted_files_with_the_same_rows(dataset: Dataset) -> None:

    hours(dataset, 3)
    before = {table.name: keys(dataset, table) for table in (POINTS, PUSHES)}

    done = {table.name: run_compact(dataset.root, table) for table in INGESTED}

    points = done["points"]
    assert points is not None
    assert (points.files_before, points.files_after) == (16, 4)  # two closed hours, two families
    assert {table.name: keys(dataset, table) for table in (POINTS, PUSHES)} == before
    assert done["histograms"] is None
    assert run_compact(dataset.root, POINTS) is None


def test_late_files_are_merged_into_their_hour(dataset: Dataset) -> None:

    end = hours(dataset, 2)
    run_compact(dataset.root, POINTS)
    ingest(dataset, pushes(0, 5), end)

    late = run_compact(dataset.root, POINTS)

    assert late is not None
    assert (late.files_before, late.files_after) == (4, 2)


@pytest.mark.spark
def test_compaction_is_no_new_data_for_the_jobs(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import merged, of_table, run_rollup

    end = hours(dataset, 2)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    run_compact(dataset.root, POINTS)
    ingest(dataset, pushes(30, 0), end)  # the next day: the day of the rollup is closed
    run_rollup(spark, dataset.root, ROLLUP_5M)
    done = run_compact(dataset.root, ROLLUP_5M, spark)

    rows = load_dataset(spark, dataset.root, "rollup_5m")
    whole = of_table(load_dataset(spark, dataset.root), ROLLUP_5M)
    assert done is not None
    assert sum(row["n"] for row in rows.collect()) == len(keys(dataset))
    columns = [name for name in ROLLUP_5M.schema.names if name != "instances"]
    assert merged(rows, ROLLUP_5M).select(columns).exceptAll(whole.select(columns)).count() == 0


@pytest.mark.spark
def test_ingest_continues_while_hours_are_compacted(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.verify import run_verify

    end = hours(dataset, 2)
    more = [pushes(2, batch) for batch in range(10)]

    def go_on() -> None:
        ingest_batches(dataset, more, end)

    ingesting = threading.Thread(target=go_on)
    ingesting.start()
    done = run_compact(dataset.root, POINTS)
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
    from odradek_spark.jobs.expire import run_vacuum
    from odradek_tables.decoder.decode import Decoder

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


def test_vacuum_deletes_replaced_files_and_keeps_compacted_ones(dataset: Dataset) -> None:
    from odradek_spark.jobs.expire import run_vacuum

    hours(dataset, 2)
    before = keys(dataset)
    run_compact(dataset.root, POINTS)
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

    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="h")
    metric.histogram.data_points.add(count=3, sum=1.5, bucket_counts=[1, 2], explicit_bounds=[0.5])
    raw = data.SerializeToString()
    end = ingest_batches(dataset, [[Told(9, raw=raw)], [Told(5, client=2, raw=raw)]])
    ingest(dataset, [Told(9999)], end)
    before = dataset.existing(HISTOGRAMS).to_pyarrow_table().sort_by("src_offset").to_pylist()

    done = run_compact(dataset.root, HISTOGRAMS)

    assert done is not None
    assert (done.files_before, done.files_after) == (2, 1)
    assert dataset.existing(HISTOGRAMS).to_pyarrow_table().sort_by("src_offset").to_pylist() == before


def test_two_compactions_at_once_write_no_row_twice(dataset: Dataset) -> None:
    hours(dataset, 3)
    before = keys(dataset)

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: run_compact(dataset.root, POINTS), range(3)))

    assert sum(each.files_before for each in done if each is not None) == 16  # each file is merged once
    assert keys(dataset) == before


def test_a_killed_compaction_changes_nothing(dataset: Dataset) -> None:
    hours(dataset, 3)
    before = keys(dataset)
    program = (
        "import os, signal, sys\n"
        "from odradek_spark.jobs.compact import run_compact\n"
        "from odradek_tables.dataset import Dataset\n"
        "from odradek_tables.schemas import POINTS\n"
        "Dataset.exchange = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)\n"
        "run_compact(sys.argv[1], POINTS)"
    )
    killed = subprocess.run([sys.executable, "-c", program, dataset.root], check=False, timeout=60)

    assert killed.returncode == -signal.SIGKILL
    assert keys(dataset) == before
    assert list(Path(dataset.root).rglob("sorted-*"))  # until vacuum
    again = run_compact(dataset.root, POINTS)
    assert again is not None
    assert again.files_before == 16
    assert keys(dataset) == before


@pytest.mark.spark
def test_a_rollup_has_the_same_sums_after_compaction(
    spark: SparkSession, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odradek_spark.jobs.rollup import merged, run_rollup

    monkeypatch.setattr("odradek_spark.jobs.compact.MOST_PARTS", 5)
    end = 0
    for hour in (0, 1, 1, 2, 3):
        end = ingest(dataset, pushes(hour, end), end)
        for each in ROLLUPS:
            run_rollup(spark, dataset.root, each)

    for table in ROLLUPS:
        columns = [name for name in table.schema.names if name != "instances"]
        before = merged(load_dataset(spark, dataset.root, table.name), table).select(columns).collect()

        done = run_compact(dataset.root, table, spark)

        rows = load_dataset(spark, dataset.root, table.name)
        assert done is not None, table.name
        assert done.files_after < done.files_before
        assert sorted(rows.select(columns).collect(), key=repr) == sorted(before, key=repr)
        assert run_compact(dataset.root, table, spark) is None
