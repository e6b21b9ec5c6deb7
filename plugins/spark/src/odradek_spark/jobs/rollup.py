"""Rollups: sums of points by five minutes, or by an hour; of the fleet, or of a client.

The rows are parts. Each run adds rows for the points since the last run, even to buckets that have rows
already; readers add them up with `merged`. So late points rewrite nothing, and there is no state.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from deltalake.exceptions import CommitFailedError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.rollup_parts import (
    Parts,
    group,
    has_sketch,
    planned,
    write_merged,
    write_part,
)
from odradek_spark.jobs.sketch import LG_K
from odradek_spark.jobs.writing import write_in_tasks
from odradek_spark.tables.coverage import cover
from odradek_spark.tables.dataset import JOB, Dataset
from odradek_spark.tables.files import Manifest
from odradek_spark.tables.following import News, last_received, news
from odradek_spark.tables.levels import EVERYTHING, Levels
from odradek_spark.tables.log import live
from odradek_spark.tables.schemas import FLEET_1H, POINTS, PUSHES, ROLLUP_1H, ROLLUP_5M, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROLLUPS = (ROLLUP_5M, ROLLUP_1H, FLEET_1H)
"""In the order in which they are brought up to date."""
DEFAULT = Levels()


def rollup(points: DataFrame, table: Table, levels: Levels = DEFAULT) -> DataFrame:
    """Add points up; the definition of a rollup, also for points that a program chose itself.

    Args:
        points: Rows of the table ``points`` that count (`odradek_spark.jobs.accepted.accepted`).
        table: `ROLLUP_5M`, `ROLLUP_1H` or `FLEET_1H`.
        levels: The metrics of `ROLLUP_1H`, and the labels that the others have.

    Returns:
        One row for each bucket and group:

        * ``bucket`` timestamp: the start of the bucket, by ``ts``; ``date`` string: its day.
        * the group: ``name``, ``unit``, ``kind``, ``temporality``, ``client_id``, ``software_name``,
          ``software_version``, ``client_rack``, ``group_id``, ``topic``, ``node_id``, ``broker_id``, and
          ``client_instance_id`` in `ROLLUP_1H`. The others have no ``client_id`` and ``group_id``, unless
          ``levels`` says so.
        * ``n`` bigint: the number of finite values; ``not_finite`` bigint: the number of NaN and infinite
          values, which no other column includes.
        * ``sum``, ``min``, ``max`` double: of the values; integers are converted to doubles.
        * ``last`` double, ``last_ts`` timestamp: the latest value; at equal times, the largest.
        * ``sum_int`` decimal(38, 0): the exact sum of the integers.
        * ``instances`` binary, not in `ROLLUP_1H`: an HLL sketch of the client instances;
          ``hll_sketch_estimate`` reads it.
    """
    width = table.bucket_s
    value = F.coalesce("value", F.col("value_int").cast("double"))
    finite = F.when(~F.isnan(value) & (F.abs(value) != float("inf")), value)
    rows = (
        chosen(points, table, levels)
        .withColumn("bucket", F.timestamp_seconds(F.floor(F.unix_seconds("ts") / width) * width))
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
    if has_sketch(table):
        aggregates.append(F.hll_sketch_agg("client_instance_id", LG_K).alias("instances"))
    return dated(rows.groupBy("bucket", *group(table)).agg(*aggregates), table)


def merged(partials: DataFrame, table: Table) -> DataFrame:
    """Add parts up.

    Args:
        partials: Rows of a rollup.
        table: Their table.

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
    if has_sketch(table):
        aggregates.append(F.hll_union_agg("instances").alias("instances"))
    return dated(partials.groupBy("bucket", *group(table)).agg(*aggregates), table)


def chosen(points: DataFrame, table: Table, levels: Levels) -> DataFrame:
    """The points of a rollup, without the labels that it does not keep."""
    if has_sketch(table):
        return points.withColumns({name: F.lit(None).cast("string") for name in levels.dropped})
    kept = [
        F.lit(True) if each == EVERYTHING else F.col("name").startswith(each)
        for each in levels.client_metrics
    ]
    return points.where(reduce(Column.__or__, kept, F.lit(False)))


def dated(rows: DataFrame, table: Table) -> DataFrame:
    """The rows with their day, in the table's order of columns."""
    return rows.withColumn("date", F.date_format("bucket", "yyyy-MM-dd")).select(*table.schema.names)


@dataclass(frozen=True, slots=True)
class RolledUp:
    """The result of a run."""

    table: str
    source: str
    """The table that was added up."""
    points: int
    """Number of points since the last run, including those of repeated pushes; for `FLEET_1H`, of rows of
    `ROLLUP_5M`."""
    rows: int
    """Number of written parts."""


def run_rollup(spark: SparkSession, root: str, table: Table, levels: Levels = DEFAULT) -> RolledUp | None:
    """Add the parts of the points that arrived since the last run.

    `FLEET_1H` is added up from the parts of `ROLLUP_5M`.

    Returns:
        None if no points arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([table])
    app_id = f"rollup:{table.name}"
    source = ROLLUP_5M if table is FLEET_1H else POINTS
    found = news(dataset, source, table, app_id)
    if found is None:
        return None
    if table is ROLLUP_1H:
        try:
            cover(
                dataset.existing(table),
                levels.client_metrics,
                None if found.after is None else last_received(dataset),
            )
        except CommitFailedError:  # another run was faster
            return None
    manifests: list[Manifest] = []
    if found.files:
        write = write_fleet if table is FLEET_1H else write_parts
        manifests = write(spark, dataset, table, levels, found)
    info = {JOB: app_id, "points": found.rows, "pointsVersion": found.version}
    if not dataset.commit_next(table, manifests, app_id, found.after, found.version, info):
        return None
    return RolledUp(table.name, source.name, found.rows, sum(each.rows for each in manifests))


def write_parts(
    spark: SparkSession, dataset: Dataset, table: Table, levels: Levels, found: News
) -> list[Manifest]:
    """Add up new points, some files in each task."""
    parts = planned(dataset.root, found.files, live(dataset.existing(PUSHES)))
    work = partial(write_part, dataset.root, table, levels)
    return write_in_tasks(spark, work, [each.text() for each in parts])


def write_fleet(
    spark: SparkSession, dataset: Dataset, table: Table, levels: Levels, found: News
) -> list[Manifest]:
    """Add up new parts of `ROLLUP_5M`, those of a day in a task."""
    days: dict[str, list[str]] = defaultdict(list)
    for each in found.files:
        days[each.partition["date"]].append(each.path)
    work = partial(write_merged, dataset.root, ROLLUP_5M, table, levels)
    return write_in_tasks(spark, work, [Parts(tuple(paths)).text() for paths in days.values()])
