"""Sums told in steps and sums told as totals: one becomes the other.

Only sums are taken (``kind`` 2). A series is what an instance tells under one name and one set of labels; a
new instance begins a new series, so a client that restarts does not count twice. A total begins with the
first row that is given; the view ``v_totals`` has those of the hours that ``rollup_1h`` keeps.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

SERIES = ["client_instance_id", "name", "attrs", "resource", "scope_name"]
SUM, DELTA, CUMULATIVE = 2, 1, 2
GROUP_1H = ("client_instance_id", "name", "unit", "client_id", "client_rack", "group_id", "topic", "node_id")
"""A version or a broker may change without the total beginning anew."""


def delta_to_cumulative(points: DataFrame) -> DataFrame:
    """Add up what was told in steps.

    Args:
        points: Rows of the table ``points`` that count; what are no delta sums is passed over.

    Returns:
        The columns of ``points`` (without other kinds of rows), and

        * ``cumulative`` double: the total with this step. A step that is not recorded adds nothing.
        * ``gap_ms`` bigint: how long before this step nothing was told; 0 for none, and for the first.
    """
    steps = value_of(points.where((F.col("kind") == SUM) & (F.col("temporality") == DELTA)))
    in_order = Window.partitionBy(*SERIES).orderBy("ts", "src_partition", "src_offset", "src_idx")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    silent = F.unix_millis("start_ts") - F.unix_millis(F.lag("ts").over(in_order))
    totals = steps.withColumn("cumulative", F.coalesce(F.sum("number").over(so_far), F.lit(0.0))).withColumn(
        "gap_ms", F.greatest(F.coalesce(silent, F.lit(0)), F.lit(0)).cast("bigint")
    )
    return totals.drop("number")


def cumulative_to_delta(points: DataFrame) -> DataFrame:
    """Take the steps out of what was told as totals (the reset rule of OpenTelemetry's data model).

    Args:
        points: Rows of the table ``points`` that count; what are no cumulative sums is passed over.

    Returns:
        The columns of ``points`` (without other kinds of rows), and

        * ``delta`` double: what was added since ``since_ts``. A total that begins anew, by a later
          ``start_ts`` or a smaller value, is all added.
        * ``since_ts`` timestamp: the sample before, or the beginning of the total.
        * ``reset`` boolean: the total began anew.
    """
    totals = value_of(points.where((F.col("kind") == SUM) & (F.col("temporality") == CUMULATIVE)))
    in_order = Window.partitionBy(*SERIES).orderBy("ts", "src_partition", "src_offset", "src_idx")
    before, began = F.lag("number").over(in_order), F.lag("start_ts").over(in_order)
    anew = F.coalesce((F.col("start_ts") > began) | (F.col("number") < before), F.lit(False))
    return (
        totals.where("number is not null")
        .withColumn("reset", anew)
        .withColumn(
            "delta",
            F.when(F.col("reset") | before.isNull(), F.col("number")).otherwise(F.col("number") - before),
        )
        .withColumn(
            "since_ts",
            F.when(F.col("reset") | before.isNull(), F.col("start_ts")).otherwise(F.lag("ts").over(in_order)),
        )
        .drop("number")
    )


def running_total(hours: DataFrame) -> DataFrame:
    """Add up the delta sums of the hourly rollup: totals over months, without the points.

    Args:
        hours: Rows of ``rollup_1h``, added up (`odradek_spark.jobs.rollup.merged`).

    Returns:
        The columns of ``rollup_1h`` (without other kinds of rows), and ``cumulative`` double: the total
        of the instance's group at the end of the bucket.
    """
    keys = list(GROUP_1H)
    so_far = (
        Window.partitionBy(*keys).orderBy("bucket").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    steps = hours.where((F.col("kind") == SUM) & (F.col("temporality") == DELTA))
    return steps.withColumn("cumulative", F.coalesce(F.sum("sum").over(so_far), F.lit(0.0)))


def value_of(points: DataFrame) -> DataFrame:
    return points.withColumn("number", F.coalesce("value", F.col("value_int").cast("double")))
