"""A rollup computed by Spark in one pass: what the parts that the workers write must add up to."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.rollup_parts import BUCKET_S, SKETCH_LG_K, group
from odradek_spark.tables.schemas import ROLLUP_5M, Table


def rollup(points: DataFrame, table: Table) -> DataFrame:
    """Add points up as a rollup does, in Spark's own expressions.

    Args:
        points: Rows of the table ``points`` that count (`odradek_spark.jobs.accepted.accepted`).
        table: `ROLLUP_5M` or `ROLLUP_1H`.

    Returns:
        The rows that `odradek_spark.jobs.rollup.merged` returns for the same points.
    """
    width = BUCKET_S[table.name]
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
    grouped = rows.groupBy("bucket", *group(table)).agg(*aggregates)
    return grouped.withColumn("date", F.date_format("bucket", "yyyy-MM-dd")).select(*table.schema.names)
