"""Rollups: the parts add up to the sums of the points in every engine."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from spark_dataset import commit_ranges
from telemetry_rows import LATENCY, SENT, Told, Value, gauge, ingest, ingest_batches

from odradek_spark.load import live_files, load_dataset
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.levels import BY_CLIENT, EVERYTHING, Levels
from odradek_tables.schemas import FLEET_1H, POINTS, ROLLUP_1H, ROLLUP_5M, ROLLUPS, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ALL = Levels((EVERYTHING,), BY_CLIENT)
BY_DUCKDB = """
with points as (
    select *, coalesce(value, cast(value_int as double)) as v
    from read_parquet($files, hive_partitioning = true)
)
select epoch(time_bucket(interval 5 minutes, ts)), name, client_id,
       count(v) filter (where isfinite(v)), count(v) - count(v) filter (where isfinite(v)),
       sum(v) filter (where isfinite(v)), min(v) filter (where isfinite(v)),
       max(v) filter (where isfinite(v)), sum(value_int), count(distinct client_instance_id)
from points where v is not null group by all
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def pushes(seed: int, at_s: float) -> list[Told]:
    source = random.Random(seed)
    found = []
    for _ in range(30):
        number = source.randrange(6)
        series = [(name, label) for name in (LATENCY, SENT, "mine") for label in "ab"]
        values = tuple(
            Value(
                name,
                source.choice((1.5, -2.25, 0.0, float("nan"), float("inf"), None, 2**60 + 1, -3)),
                (("topic", label),),
            )
            for name, label in source.sample(series, source.randrange(5))
        )
        found.append(Told(at_s + source.random() * 1500, values, number, f"app-{number % 3}"))
    return sorted(found, key=lambda each: each.at_s)


def comparable(rows: DataFrame, table: Table) -> list[tuple[Any, ...]]:
    """Rows in an order, with sketches as estimates."""
    from pyspark.sql import functions as F  # noqa: N812

    if table is not ROLLUP_1H:
        rows = rows.withColumn("instances", F.hll_sketch_estimate("instances"))
    return sorted((tuple(row) for row in rows.collect()), key=repr)


@pytest.mark.parametrize("levels", [ALL, Levels()], ids=["everything", "default"])
def test_parts_add_up_to_the_sums_of_the_points(
    spark: SparkSession, dataset: Dataset, levels: Levels
) -> None:
    from odradek_spark.jobs.rollup import merged, of_table, run_rollup

    start = 0
    for batch in range(3):
        start = ingest(dataset, pushes(batch, 600.0 * batch), start)
        for table in ROLLUPS:
            run_rollup(spark, dataset.root, table, levels)

    points = load_dataset(spark, dataset.root, "points")
    for table in ROLLUPS:
        parts = load_dataset(spark, dataset.root, table.name)
        expected = comparable(of_table(points, table, levels), table)
        assert expected
        assert comparable(merged(parts, table), table) == expected
        assert parts.count() > len(expected)


def test_the_levels_choose_metrics_and_labels(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    told = [
        gauge(gauge(Told(10, client=number, client_id=f"app-{number}"), 1.0), 2.0, "mine")
        for number in (1, 2)
    ]
    ingest(dataset, told, 0)

    for table in ROLLUPS:
        run_rollup(spark, dataset.root, table)

    by_client = load_dataset(spark, dataset.root, "rollup_1h").collect()
    assert sorted((row["client_id"], row["name"]) for row in by_client) == [
        ("app-1", LATENCY),
        ("app-2", LATENCY),
    ]
    for table in (ROLLUP_5M, FLEET_1H):
        fleet = load_dataset(spark, dataset.root, table.name).collect()
        assert sorted((row["name"], row["client_id"], row["n"]) for row in fleet) == [
            ("mine", None, 2),
            (LATENCY, None, 2),
        ]


def test_rows_do_not_grow_with_the_clients(spark: SparkSession, tmp_path: Path) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    rows = {}
    for clients in (4, 40):
        made = Dataset(str(tmp_path / str(clients)))
        ingest(
            made, [gauge(Told(10, client=each, client_id=f"app-{each}"), 1.0) for each in range(clients)], 0
        )
        for table in (ROLLUP_5M, FLEET_1H):
            done = run_rollup(spark, made.root, table)
            assert done is not None
            rows[clients, table.name] = done.rows

    assert set(rows.values()) == {1}


def test_duckdb_computes_the_same(spark: SparkSession, dataset: Dataset) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from odradek_spark.jobs.rollup import run_rollup

    ingest_batches(dataset, [pushes(1, 0.0), pushes(2, 900.0)])
    expected = duckdb.execute(BY_DUCKDB, {"files": live_files(dataset, POINTS)}).fetchall()

    run_rollup(spark, dataset.root, ROLLUP_5M, ALL)

    found = (
        load_dataset(spark, dataset.root, "rollup_5m")
        .groupBy(F.unix_seconds("bucket").cast("double"), "name", "client_id")
        .agg(
            F.sum("n"),
            F.sum("not_finite"),
            F.sum("sum"),
            F.min("min"),
            F.max("max"),
            F.sum("sum_int"),
            F.hll_sketch_estimate(F.hll_union_agg("instances")),
        )
    )
    rows = {tuple(row)[:3]: tuple(row)[3:] for row in found.collect()}
    assert len(rows) == len(expected)
    for row in expected:
        got = rows[row[:3]]
        assert got[:2] + got[3:] == tuple(row[3:5] + row[6:])
        assert math.isclose(got[2] or 0.0, row[5] or 0.0, rel_tol=1e-12)


def test_a_run_without_new_files_writes_nothing(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    ingest(dataset, pushes(1, 0.0), 0)
    first = run_rollup(spark, dataset.root, ROLLUP_5M)

    again = run_rollup(spark, dataset.root, ROLLUP_5M)

    assert first is not None
    assert first.rows > 0
    assert again is None


def test_late_data_are_added_to_existing_buckets(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import merged, run_rollup

    end = ingest(dataset, [gauge(Told(10.0), 2.0), gauge(Told(4000.0), 8.0)], 0)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    ingest(dataset, [gauge(Told(20.0, client=2), 4.0)], end)

    run_rollup(spark, dataset.root, ROLLUP_5M)

    rows = merged(load_dataset(spark, dataset.root, "rollup_5m"), ROLLUP_5M).orderBy("bucket").collect()
    assert [(row["n"], row["sum"], row["last"]) for row in rows] == [(2, 6.0, 4.0), (1, 8.0, 8.0)]


def test_a_repeated_push_counts_once(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    twice = gauge(Told(10.0), 2.0)
    again = Told(12.0, raw=twice.payload())
    much_later = Told(400.0, raw=twice.payload())
    end = ingest(dataset, [twice], 0)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    ingest(dataset, [again, much_later], end)

    run_rollup(spark, dataset.root, ROLLUP_5M)

    counts = [row["n"] for row in load_dataset(spark, dataset.root, "rollup_5m").collect()]
    assert sorted(counts) == [1, 1]  # the first, and the one that no client would repeat so late


def test_a_batch_missing_from_some_tables_waits(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup
    from odradek_tables.files import write_files

    end = ingest(dataset, [gauge(Told(10.0), 2.0)], 0)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    from odradek_tables.decoder.decode import Decoder

    rows = Decoder().decode([gauge(Told(20.0), 3.0).record(end)]).points
    commit_ranges(dataset, POINTS, write_files(dataset.root, POINTS, rows), {0: (end, end + 1)})

    early = run_rollup(spark, dataset.root, ROLLUP_5M)
    ingest(dataset, [gauge(Told(20.0), 3.0)], end)
    later = run_rollup(spark, dataset.root, ROLLUP_5M)

    assert early is None
    assert later is not None
    assert (later.points, later.rows) == (1, 1)


def test_the_fleet_goes_on_where_an_earlier_version_ended(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    end = ingest(dataset, [gauge(Told(10.0), 2.0)], 0)
    run_rollup(spark, dataset.root, ROLLUP_5M)
    dataset.create([FLEET_1H])
    dataset.commit_next(FLEET_1H, [], "rollup:fleet_1h", None, dataset.existing(ROLLUP_5M).version())
    end = ingest(dataset, [gauge(Told(20.0), 3.0)], end)
    run_rollup(spark, dataset.root, ROLLUP_5M)

    done = run_rollup(spark, dataset.root, FLEET_1H)

    assert done is not None
    assert (done.points, done.rows) == (1, 1)


def test_an_empty_dataset_is_reported(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.rollup import run_rollup

    with pytest.raises(DatasetError, match="ingest into it first"):
        run_rollup(spark, dataset.root, ROLLUP_5M)
