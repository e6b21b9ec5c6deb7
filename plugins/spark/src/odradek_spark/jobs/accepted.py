"""Excludes repeated pushes: a client that did not receive the answer sends its push again."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_tables.query.views import RETRY_INTERVALS

SOURCE_KEY = ["src_partition", "src_offset"]
"""The key of a record."""
PUSH_KEY = [*SOURCE_KEY, "client_instance_id"]
"""The key of a push: a record of OTLP has one for each client."""
RETRIES_BEFORE = RETRY_INTERVALS * timedelta(hours=1)
"""Longest time between a push and its repetition: `interval.ms` is at most an hour (KIP-714)."""


def repeated(pushes: DataFrame) -> DataFrame:
    """The repeated pushes.

    Args:
        pushes: The table ``pushes``.

    Returns:
        The keys of the pushes whose instance sent equal bytes within the two push intervals before, and of
        further copies of a record, which have the same origin, however late they come. The first of equal
        pushes is not one of them. Metrics have times, so equal bytes are no coincidence.
    """
    sent = pushes.where("payload_bytes > 0")
    # The window sorts its rows, so it gets only the pushes whose payload occurs more than once.
    again = sent.groupBy("payload_hash").agg(F.count("*").alias("times")).where("times > 1")
    same = Window.partitionBy("client_instance_id", "payload_hash").orderBy("recv_ts", *SOURCE_KEY)
    earlier_ms = F.unix_millis(F.lag("recv_ts").over(same))
    within = F.unix_millis("recv_ts") - earlier_ms <= RETRY_INTERVALS * F.col("push_interval_ms")
    copies = Window.partitionBy("client_instance_id", "payload_hash", "origin").orderBy(
        "recv_ts", *SOURCE_KEY
    )
    is_copy = F.col("origin").isNotNull() & (F.row_number().over(copies) > 1)
    candidates = sent.join(again, "payload_hash", "left_semi")
    return candidates.withColumn("is_repeated", within | is_copy).where("is_repeated").select(*PUSH_KEY)


def counted(points: DataFrame, pushes: DataFrame) -> DataFrame:
    """The points of pushes that count.

    The keys of repeated pushes are broadcast, so that no point is moved: they are few.

    Args:
        points: Rows of the table ``points``.
        pushes: The table ``pushes``: those of the points, and of two push intervals before.
    """
    return points.join(F.broadcast(repeated(pushes)), PUSH_KEY, "left_anti").select(*points.columns)


def accepted(points: DataFrame, pushes: DataFrame) -> DataFrame:
    """The points of pushes that count, with ``push_interval_ms`` int; points without their push are left out.

    No table passes through the driver: the pushes of a large fleet do not fit there.
    """
    intervals = pushes.select(*PUSH_KEY, "push_interval_ms")
    counting = points.join(intervals, PUSH_KEY).join(repeated(pushes), PUSH_KEY, "left_anti")
    return counting.select(*points.columns, "push_interval_ms")
