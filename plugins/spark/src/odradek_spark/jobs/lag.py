"""The lag of consumer groups over time, from the pushes of the source ``lag``."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.frames import points as points_of
from odradek_tables.query.views import LAG

LATE: Final = "30 minutes"


def lag(df: DataFrame) -> DataFrame:
    """The lag of each partition that a group reads, each time that it was told.

    Args:
        df: Rows of the table ``points``, or records of the topic; a batch or a stream.

    Returns:
        ``ts`` timestamp; ``group``, ``topic`` string; ``partition`` int; ``lag``, ``offset``, ``unstable``,
        ``lost``, ``ahead`` double: records, an offset; ``lag_s`` double: seconds since the oldest unread
        record was appended. They are null where nothing was told.
    """
    rows = df if "value_int" in df.columns else points_of(df)
    if rows.isStreaming:
        rows = rows.withWatermark("ts", LATE)
    value = F.coalesce("value", F.col("value_int").cast("double"))
    told = rows.where(F.col("name").isin(*LAG.values())).select(
        "ts",
        F.get_json_object("attrs", "$.group").alias("group"),
        "topic",
        F.col("partition").cast("int").alias("partition"),
        *(F.when(F.col("name") == name, value).alias(column) for column, name in LAG.items()),
    )
    latest = (F.max(column).alias(column) for column in LAG)
    return told.groupBy("ts", "group", "topic", "partition").agg(*latest)
