"""Steps to totals and back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from telemetry_rows import MIDNIGHT_S, Told, counted, gauge, ingest

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.load import load_dataset
from odradek_spark.tables.schemas import ROLLUP_1H

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
COLUMNS = (
    "bucket",
    "client_instance_id",
    "name",
    "unit",
    "client_id",
    "client_rack",
    "group_id",
    "topic",
    "node_id",
    "cumulative",
)
TOTALS = f"SELECT {', '.join(COLUMNS)} FROM v_totals ORDER BY bucket, client_instance_id"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "dataset"))


def points(spark: SparkSession, dataset: Dataset, *told: Told) -> DataFrame:
    ingest(dataset, told, 0)
    return load_dataset(spark, dataset.root, "points")


def test_steps_become_totals(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.cumulative import delta_to_cumulative

    told = points(
        spark,
        dataset,
        counted(Told(30), 5, 0),
        gauge(Told(35), 99.0),
        counted(Told(60), 0, 30),
        counted(Told(150), 2.5, 120),  # nothing was told for a minute
        counted(Told(160, client=2), 7, 150),  # the client again, after a restart
        counted(Told(180), 1, 150),
    )

    rows = delta_to_cumulative(told).orderBy("client_instance_id", "ts").collect()

    assert [(row["cumulative"], row["gap_ms"]) for row in rows] == [
        (5.0, 0),
        (5.0, 0),
        (7.5, 60_000),
        (8.5, 0),
        (7.0, 0),
    ]


def test_totals_become_steps(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.cumulative import cumulative_to_delta

    told = points(
        spark,
        dataset,
        counted(Told(30), 5, 0, "cumulative"),
        counted(Told(60), 9, 0, "cumulative"),
        counted(Told(90), 4, 0, "cumulative"),  # smaller: it began anew, and did not say so
        counted(Told(120), 6, 100, "cumulative"),  # it says so
        counted(Told(150), 6, 100, "cumulative"),
    )

    rows = cumulative_to_delta(told).selectExpr("*", "unix_seconds(ts) - unix_seconds(since_ts) as s")

    found = [(row["delta"], row["reset"], row["s"]) for row in rows.orderBy("ts").collect()]
    assert found == [
        (5.0, False, 30),
        (4.0, False, 30),
        (4.0, True, 90),
        (6.0, True, 20),
        (0.0, False, 30),
    ]


def test_the_hours_of_the_rollup_add_up(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.cumulative import running_total
    from odradek_spark.jobs.rollup import merged, rollup

    told = points(
        spark,
        dataset,
        counted(Told(30), 5, 0),
        counted(Told(60, version="4.1.0"), 2, 30),
        counted(Told(3700), 3, 3600),
        counted(Told(3800, client=2), 100, 3700),
    )
    hours = merged(rollup(told, ROLLUP_1H), ROLLUP_1H)

    rows = running_total(hours).orderBy("client_instance_id", "bucket").collect()

    assert [(row["sum"], row["cumulative"]) for row in rows if row["sum"] != 5.0] == [
        (2.0, 7.0),
        (3.0, 10.0),
        (100.0, 100.0),
    ]


def test_the_view_of_totals_says_the_same_in_both_engines(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.cumulative import GROUP_1H, running_total
    from odradek_spark.jobs.rollup import merged, run_rollup
    from odradek_spark.query.reader import Reader
    from odradek_spark.query.views import register_views

    ingest(
        dataset, [counted(Told(30), 5, 0), gauge(Told(40), 99.0), counted(Told(50), 9, 0, "cumulative")], 0
    )
    run_rollup(spark, dataset.root, ROLLUP_1H)
    late = [
        counted(Told(60, version="4.1.0"), 2, 30),
        counted(Told(3700), 3, 3600),
        counted(Told(90_000), 0.5, 89_000),
        counted(Told(3800, client=2), 100, 3700),
        counted(Told(3900, client=2), float("nan"), 3800, name="not.a.number"),
    ]
    ingest(dataset, late, 3)
    run_rollup(spark, dataset.root, ROLLUP_1H)  # parts of an hour that has parts

    hours = merged(load_dataset(spark, dataset.root, "rollup_1h"), ROLLUP_1H)
    expected = {row_key(row): row["cumulative"] for row in running_total(hours).select(*COLUMNS).collect()}
    register_views(spark, dataset.root)
    by_spark = spark.sql(TOTALS).collect()
    since_late = Reader(dataset.root, since=datetime.fromtimestamp(MIDNIGHT_S + 90_000, UTC))
    by_duckdb = since_late.ask(TOTALS).to_pylist()

    assert list(COLUMNS) == ["bucket", *GROUP_1H, "cumulative"]
    assert sorted(expected.values()) == [0.0, 7.0, 10.0, 10.5, 100.0]
    assert {row_key(row): row["cumulative"] for row in by_spark} == expected
    assert {row_key(row): row["cumulative"] for row in by_duckdb} == expected
    assert len(by_spark) == len(by_duckdb) == len(expected)


def row_key(row: Any) -> tuple[Any, ...]:
    """Whose total it is, and of which hour; the session's times are UTC."""
    return (row["bucket"].replace(tzinfo=None), *(row[name] for name in COLUMNS[1:-1]))
