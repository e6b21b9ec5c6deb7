"""Rollups: sums of points by five minutes, or by an hour.

The rows are parts. Each run adds rows for the points since the last run, even to buckets that have rows
already; readers add them up with `merged`. So late points rewrite nothing, and there is no state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.following import News, news
from odradek_spark.jobs.rollup_parts import SKETCH_LG_K, group, planned, write_part
from odradek_spark.jobs.writing import write_in_tasks
from odradek_spark.tables.dataset import JOB, Dataset
from odradek_spark.tables.files import Manifest
from odradek_spark.tables.log import live
from odradek_spark.tables.schemas import POINTS, PUSHES, ROLLUP_1H, ROLLUP_5M, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROLLUPS = (ROLLUP_5M, ROLLUP_1H)


def rollup(points: DataFrame, table: Table) -> DataFrame:
    """Add points up; the definition of a rollup, also for points that a program chose itself.

    Args:
        points: Rows of the table ``points`` that count (`odradek_spark.jobs.accepted.accepted`).
        table: `ROLLUP_5M` or `ROLLUP_1H`.

    Returns:
        One row for each bucket and group:

        * ``bucket`` timestamp: the start of the bucket, by ``ts``; ``date`` string: its day.
        * the group: ``name``, ``unit``, ``kind``, ``temporality``, ``client_id``, ``software_name``,
          ``software_version``, ``client_rack``, ``group_id``, ``topic``, ``node_id``, ``broker_id``, and
          ``client_instance_id`` in `ROLLUP_1H`.
        * ``n`` bigint: the number of finite values; ``not_finite`` bigint: the number of NaN and infinite
          values, which no other column includes.
        * ``sum``, ``min``, ``max`` double: of the values; integers are converted to doubles.
        * ``last`` double, ``last_ts`` timestamp: the latest value; at equal times, the largest.
        * ``sum_int`` decimal(38, 0): the exact sum of the integers.
        * ``instances`` binary, only in `ROLLUP_5M`: an HLL sketch of the client instances;
          ``hll_sketch_estimate`` reads it.
    """
    width = table.bucket_s
    value = F.coalesce("value", F.col("value_int").cast("double"))
    finite = F.when(~F.isnan(value) & (F.abs(value) != float("inf")), value)
    rows = (
        points.withColumn("bucket", F.timestamp_seconds(F.floor(F.unix_seconds("ts") / width) * width))
        .withColumn("finite", finite)
        .withColumn("any_value", value)
        .where("any_value is not null")
    )
    latest = F.max(F.when(F.col("finite").isNotNull(), F.struct("ts", "finite")))
    aggregates = [
        F.count("finite").alias("n"),
        (F.count("any_value") - F.count("finite")).alias("not_finite"),
        F.sum("finite").alias("sum"),
        F.min("finite").alias("min"),
        F.max("finite").alias("max"),
        latest["finite"].alias("last"),
        latest["ts"].alias("last_ts"),
        F.sum(F.col("value_int").cast("decimal(38,0)")).alias("sum_int"),
    ]
    if table is ROLLUP_5M:
        aggregates.append(F.hll_sketch_agg("client_instance_id", SKETCH_LG_K).alias("instances"))
    return dated(rows.groupBy("bucket", *group(table)).agg(*aggregates), table)


def merged(partials: DataFrame, table: Table) -> DataFrame:
    """Add parts up.

    Args:
        partials: Rows of a rollup.
        table: `ROLLUP_5M` or `ROLLUP_1H`.

    Returns:
        One row for each bucket and group, with the columns of `rollup`.
    """
    latest = F.max(F.when(F.col("last_ts").isNotNull(), F.struct("last_ts", "last")))
    aggregates: list[Column] = [
        F.sum("n").alias("n"),
        F.sum("not_finite").alias("not_finite"),
        F.sum("sum").alias("sum"),
        F.min("min").alias("min"),
        F.max("max").alias("max"),
        latest["last"].alias("last"),
        latest["last_ts"].alias("last_ts"),
        F.sum("sum_int").cast("decimal(38,0)").alias("sum_int"),
    ]
    if table is ROLLUP_5M:
        aggregates.append(F.hll_union_agg("instances").alias("instances"))
    return dated(partials.groupBy("bucket", *group(table)).agg(*aggregates), table)


def dated(rows: DataFrame, table: Table) -> DataFrame:
    """The rows with their day, in the table's order of columns."""
    return rows.withColumn("date", F.date_format("bucket", "yyyy-MM-dd")).select(*table.schema.names)


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The result of a run."""

    table: str
    points: int
    """Number of points since the last run, including those of repeated pushes."""
    rows: int
    """Number of written parts."""


def run_rollup(spark: SparkSession, root: str, table: Table) -> RolledUp | None:
    """Add the parts of the points that arrived since the last run.

    Returns:
        None if no points arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([table])
    app_id = f"rollup:{table.name}"
    found = news(dataset, POINTS, table, app_id)
    if found is None:
        return None
    manifests = write_parts(spark, dataset, table, found) if found.files else []
    info = {JOB: app_id, "points": found.rows, "pointsVersion": found.version}
    if not dataset.commit_next(table, manifests, app_id, found.after, found.version, info):
        return None
    return RolledUp(table.name, found.rows, sum(each.rows for each in manifests))


def write_parts(spark: SparkSession, dataset: Dataset, table: Table, found: News) -> list[Manifest]:
    """Add up new points, some files in each task."""
    parts = planned(dataset.root, found.files, live(dataset.existing(PUSHES)))
    return write_in_tasks(spark, partial(write_part, dataset.root, table), [each.text() for each in parts])
