"""Excludes repeated pushes: a client that did not receive the answer sends its push again."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

SOURCE_KEY = ["src_partition", "src_offset"]
RETRY_INTERVALS = 2
"""An equal payload within this many push intervals is a repeated push."""
RETRIES_BEFORE = RETRY_INTERVALS * timedelta(hours=1)
"""Longest time between a push and its repetition: `interval.ms` is at most an hour (KIP-714)."""


def with_retries(pushes: DataFrame) -> DataFrame:
    """Mark repeated pushes.

    Args:
        pushes: The table ``pushes``.

    Returns:
        Its columns, and ``is_retry`` boolean: the instance sent equal bytes within the two push intervals
        before. The first of equal pushes is not a retry. Metrics have times, so equal bytes are no
        coincidence.
    """
    same = Window.partitionBy("client_instance_id", "payload_hash").orderBy("recv_ts", *SOURCE_KEY)
    earlier_ms = F.unix_millis(F.lag("recv_ts").over(same))
    within = F.unix_millis("recv_ts") - earlier_ms <= RETRY_INTERVALS * F.col("push_interval_ms")
    return pushes.withColumn("is_retry", F.coalesce(within & (F.col("payload_bytes") > 0), F.lit(False)))


def accepted(points: DataFrame, pushes: DataFrame) -> DataFrame:
    """The points of pushes that count.

    Args:
        points: The table ``points``.
        pushes: The table ``pushes``: those of the points, and of two push intervals before.

    Returns:
        The columns of ``points``, and ``push_interval_ms`` int. Points without their push are left out.
    """
    counting = with_retries(pushes).where(~F.col("is_retry")).select(*SOURCE_KEY, "push_interval_ms")
    return points.join(F.broadcast(counting), SOURCE_KEY).select(*points.columns, "push_interval_ms")
