"""Every table in other tools: DuckDB, polars, a Delta reader and Spark read the same rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from spark_payloads import metrics_data
from telemetry_rows import LATENCY, SENT, Told, counted, gauge, ingest_batches

from odradek_spark.jobs.rules import Op, Rule
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.load import live_files, load_dataset
from odradek_spark.tables.schemas import BY_NAME, ROLLUP_1H, ROLLUP_5M, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
RULE = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=100.0)


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Metrics of every kind, an invalid payload, and the results of the jobs."""
    from odradek_spark.jobs.episodes import run_detect
    from odradek_spark.jobs.inventory import run_inventory
    from odradek_spark.jobs.rollup import run_rollup

    made = Dataset(str(tmp_path_factory.mktemp("every") / "dataset"))
    told = [gauge(counted(Told(float(at), client=2), at, at - 30.0), 250.0) for at in range(30, 600, 30)]
    kinds = [Told(3600.0, raw=metrics_data(random.Random(seed)).SerializeToString()) for seed in range(40)]
    big = counted(Told(7000.0), 2**53 + 1, 6970.0, "cumulative")
    ingest_batches(made, [told, kinds, [Told(7000.0, raw=b"\xff\xff\x00"), big]])
    for table in (ROLLUP_5M, ROLLUP_1H):
        run_rollup(spark, made.root, table)
    run_inventory(spark, made.root)
    run_detect(spark, made.root, (RULE,))
    return made


def lines(table: Table, rows: pa.Table) -> list[str]:
    """Comparable rows: NaN equals NaN, and the order is ignored."""
    columns = {field.name: rows[field.name].cast(field.type).to_pylist() for field in table.schema}
    return sorted(repr(row) for row in zip(*columns.values(), strict=True))


def by_duckdb(dataset: Dataset, table: Table) -> pa.Table:
    """The files that the log names, read without a Delta reader."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    query = "SELECT * FROM read_parquet($files, hive_partitioning = true, hive_types_autocast = false)"
    found: Any = connection.sql(query, params={"files": live_files(dataset, table)})
    return found.to_arrow_table()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_table_is_the_same_to_all_readers(spark: SparkSession, dataset: Dataset, name: str) -> None:
    table = BY_NAME[name]
    expected = lines(table, dataset.existing(table).to_pyarrow_table())

    found = {
        "duckdb": lines(table, by_duckdb(dataset, table)),
        "polars": lines(table, pl.read_delta(dataset.uri(table)).to_arrow()),
        "spark": lines(table, load_dataset(spark, dataset.root, name).toArrow()),
    }

    assert expected
    for reader, rows in found.items():
        assert rows == expected, reader


def test_an_integer_beyond_doubles_is_exact(dataset: Dataset) -> None:
    points = pl.read_delta(dataset.uri(BY_NAME["points"]))

    found = points.filter((pl.col("name") == SENT) & (pl.col("value_int") > 2**53))

    assert found["value_int"].to_list() == [2**53 + 1]
    assert found["value"].to_list() == [None]
