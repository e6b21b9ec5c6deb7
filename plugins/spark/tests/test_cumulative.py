"""Steps to totals and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from telemetry_rows import Told, counted, gauge, ingest

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.load import load_dataset
from odradek_spark.tables.schemas import ROLLUP_1H

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


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


def test_totals_go_on_where_they_stood(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.cumulative import SERIES, delta_to_cumulative

    told = points(spark, dataset, *[counted(Told(30.0 * n), n, 30.0 * (n - 1)) for n in range(1, 7)])
    first, rest = told.where("src_offset < 3"), told.where("src_offset >= 3")
    carry = delta_to_cumulative(first).where("src_offset = 2").select(*SERIES, "cumulative")

    rows = delta_to_cumulative(rest, carry).orderBy("ts").collect()

    assert [row["cumulative"] for row in rows] == [10.0, 15.0, 21.0]


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
