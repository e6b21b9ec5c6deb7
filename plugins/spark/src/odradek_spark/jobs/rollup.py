"""Rollups: sums of points by five minutes, or by an hour; of the fleet, or of a client.

The rows of the tables are parts. Each run adds rows for the points since the last run, even to buckets that
have rows already; readers add them up with `merged`. So late points rewrite nothing, and there is no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.frames import points as points_of
from odradek_spark.jobs.accepted import counted
from odradek_spark.jobs.writing import write_frame
from odradek_spark.load import load_dataset, read_spans
from odradek_tables.dataset import JOB, Dataset
from odradek_tables.files import Manifest
from odradek_tables.following import news
from odradek_tables.levels import EVERYTHING, Levels
from odradek_tables.query.views import LONGEST_RETRY
from odradek_tables.schemas import AGGREGATES, FLEET_1H, GROUP, POINTS, ROLLUP_5M, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT = Levels()
DAY_S: Final = 86_400
INSTANCE: Final = "client_instance_id"
LABELS: Final = tuple(field.name for field in GROUP)
"""The columns by which points are added up."""
LATE: Final = "30 minutes"
"""Watermark of a stream: twice the largest difference between ``ts`` and the receive time."""
LG_K: Final = 10
"""1024 registers: the number of instances within 3.3 %, in at most 1 kB."""
PART_ROWS: Final = 4 << 20
"""Limit of the points whose sums are in one file."""
SORTED_BY: Final = ("name", INSTANCE, "topic", "node_id", "software_version", "bucket")
"""Rows of a metric together, then those of a client or a label: readers skip the row groups of others."""


def rollup(
    df: DataFrame, every: str = "1 hour", by: Sequence[str] = LABELS, quantiles: Sequence[float] = ()
) -> DataFrame:
    """Add points up, of a batch or a stream.

    A stream needs its own checkpoint; it emits a bucket once it is over, and drops points that are later than
    half an hour. Repeated pushes count again, unless they are left out before
    (`odradek_spark.jobs.accepted`).

    Args:
        df: Rows of the table ``points``, or records of the topic.
        every: The length of a bucket, an interval of Spark.
        by: The columns of ``points`` by which they are added up.
        quantiles: Which quantiles of the values to estimate.

    Returns:
        One row for each bucket and group:

        * ``bucket`` timestamp: its start, by ``ts``; ``date`` string: its day.
        * the columns ``by``.
        * ``n`` bigint: the number of finite values; ``not_finite`` bigint: the number of NaN and infinite
          values, which no other column includes.
        * ``sum``, ``min``, ``max`` double: of the values; integers are converted to doubles.
        * ``last`` double, ``last_ts`` timestamp: the latest value; at equal times, any of them.
        * ``sum_int`` decimal(38, 0): the exact sum of the integers.
        * ``instances`` binary, unless ``by`` has the instance: an HLL sketch of the client instances;
          ``hll_sketch_estimate`` reads it.
        * ``quantiles`` array<double>, if any are asked for.
    """
    rows = df if "value_int" in df.columns else points_of(df)
    if rows.isStreaming:
        rows = rows.withWatermark("ts", LATE)
    value = F.coalesce("value", F.col("value_int").cast("double"))
    is_finite = ~F.isnan(value) & (F.abs(value) != float("inf"))
    told = rows.select(
        "ts", "value_int", INSTANCE, *by, value.alias("any"), F.when(is_finite, value).alias("finite")
    )
    aggregates = [
        F.count("finite").alias("n"),
        (F.count("any") - F.count("finite")).alias("not_finite"),
        F.sum("finite").alias("sum"),
        F.min("finite").alias("min"),
        F.max("finite").alias("max"),
        *latest("finite", "ts"),
        F.sum(F.col("value_int").cast("decimal(38,0)")).alias("sum_int"),
    ]
    if INSTANCE not in by:
        aggregates.append(F.hll_sketch_agg(INSTANCE, LG_K).alias("instances"))
    if quantiles:
        aggregates.append(estimated("finite", quantiles).alias("quantiles"))
    summed = told.where("any IS NOT NULL").groupBy(F.window("ts", every), *by).agg(*aggregates)
    names = [name for name in summed.columns if name != "window"]
    return dated(summed.select(F.col("window.start").alias("bucket"), *names))


def latest(value: str, ts: str) -> list[Column]:
    """The last value and its time. Spark adds these up in a hash table, unlike a struct of both."""
    known = F.when(F.col(value).isNotNull(), F.col(ts))
    return [F.max_by(value, known).alias("last"), F.max(known).alias("last_ts")]


def estimated(value: str, quantiles: Sequence[float]) -> Column:
    """Estimates of quantiles, from a KLL sketch where Spark has it."""
    if hasattr(F, "kll_sketch_agg_double"):
        wanted = F.array(*(F.lit(each) for each in quantiles))
        return F.kll_sketch_get_quantile_double(F.kll_sketch_agg_double(value), wanted)
    return F.percentile_approx(value, list(quantiles))


def dated(rows: DataFrame) -> DataFrame:
    """The rows with the day of their bucket in UTC, whatever the time zone of the session is."""
    days = F.floor(F.unix_seconds("bucket") / DAY_S).cast("int")
    return rows.withColumn("date", F.date_from_unix_date(days).cast("string"))


def of_table(points: DataFrame, table: Table, levels: Levels = DEFAULT) -> DataFrame:
    """The rows of one of `ROLLUPS` for points that count (`odradek_spark.jobs.accepted.counted`)."""
    summed = rollup(chosen(points, table, levels), f"{table.bucket_s} seconds", group(table))
    return summed.select(*table.schema.names)


def merged(partials: DataFrame, table: Table) -> DataFrame:
    """Add parts up: one row for each bucket and group, with the columns of the table."""
    aggregates = [
        F.sum("n").alias("n"),
        F.sum("not_finite").alias("not_finite"),
        F.sum("sum").alias("sum"),
        F.min("min").alias("min"),
        F.max("max").alias("max"),
        *latest("last", "last_ts"),
        F.sum("sum_int").cast("decimal(38,0)").alias("sum_int"),
    ]
    if has_sketch(table):
        aggregates.append(F.hll_union_agg("instances").alias("instances"))
    return dated(partials.groupBy("bucket", *group(table)).agg(*aggregates)).select(*table.schema.names)


def group(table: Table) -> list[str]:
    """The columns by which a table groups, besides the bucket."""
    added = {"bucket", "date", "instances", *(each.name for each in AGGREGATES)}
    return [name for name in table.schema.names if name not in added]


def has_sketch(table: Table) -> bool:
    """Whether a table has a sketch of the instances, because it does not group by them."""
    return "instances" in table.schema.names


def chosen(points: DataFrame, table: Table, levels: Levels) -> DataFrame:
    """The points of a table, without the labels that it does not keep."""
    if has_sketch(table):
        return points.withColumns({name: F.lit(None).cast("string") for name in levels.dropped})
    kept = [
        F.lit(True) if each == EVERYTHING else F.col("name").startswith(each)
        for each in levels.client_metrics
    ]
    return points.where(reduce(Column.__or__, kept, F.lit(False)))


def in_order(rows: DataFrame, files: int) -> DataFrame:
    order = [name for name in SORTED_BY if name in rows.columns]
    return rows.repartition(files, "name").sortWithinPartitions(*order)


@dataclass(frozen=True, slots=True)
class RolledUp:
    table: str
    points: int
    """Number of points since the last run, including those of repeated pushes, and histograms."""
    rows: int
    """Number of written parts."""


def run_rollup(spark: SparkSession, root: str, table: Table, levels: Levels = DEFAULT) -> RolledUp | None:
    """Add the parts of the points that arrived since the last run.

    Returns:
        None if no points arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([table])
    if table is FLEET_1H:
        continue_from_parts(dataset)
    app_id = app_of(table)
    found = news(dataset, POINTS, table, app_id)
    if found is None:
        return None
    manifests: list[Manifest] = []
    if found.files:
        since = None if found.since is None else found.since - LONGEST_RETRY
        points = read_spans(spark, root, POINTS, found.files, found.spans)
        rows = of_table(counted(points, load_dataset(spark, root, "pushes", since)), table, levels)
        manifests = write_frame(in_order(rows, 1 + found.rows // PART_ROWS), root, table)
    info = {JOB: app_id, "points": found.rows, "pointsVersion": found.version}
    if not dataset.commit_next(table, manifests, app_id, found.after, found.version, info):
        return None
    return RolledUp(table.name, found.rows, sum(each.rows for each in manifests))


def app_of(table: Table) -> str:
    return f"rollup:{table.name}" + ":points" * (table is FLEET_1H)


def continue_from_parts(dataset: Dataset) -> None:
    """Note the points that `FLEET_1H` has: earlier versions added it up from the parts of `ROLLUP_5M`."""
    before = dataset.committed(FLEET_1H, f"rollup:{FLEET_1H.name}")
    if before is None or dataset.committed(FLEET_1H, app_of(FLEET_1H)) is not None:
        return
    parts = dataset.existing(ROLLUP_5M)
    parts.load_as_version(before)
    reached = parts.transaction_version(app_of(ROLLUP_5M))
    if reached is not None:
        dataset.commit_next(FLEET_1H, [], app_of(FLEET_1H), None, reached)
