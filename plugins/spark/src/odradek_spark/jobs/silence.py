"""Clients that are subscribed but stopped pushing, without a goodbye.

The time in which nobody is heard at a broker does not count: while it is down, or the network in front of it,
its clients are not silent. A client that is alone there cannot be told from a broker that is away.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.frames import pushes as pushes_of
from odradek_spark.jobs.life import INSTANCE, OF_PUSH
from odradek_tables.query.views import OF_CLIENTS

SILENT_INTERVALS = 3.0
"""A client pushes once in 0.5 to 1.5 intervals, and two pushes may be lost (KIP-714)."""
LATE = 1.75
"""Push intervals without any push at a broker that are too long: a client waits for at most 1.5 of them."""
LEAST_AWAY_MS = 10_000
TOLD = ("recv_ts", "push_interval_ms", "terminating", "is_expected", "at_ms", "now_ms", "away_ms")


def silent(df: DataFrame, intervals: float = SILENT_INTERVALS) -> DataFrame:
    """The instances that stopped pushing, without a goodbye and without a newer instance of their client id.

    Args:
        df: A batch: rows of the table ``pushes``, or records of the topic.
        intervals: For how many of its push intervals an instance must be silent, until the latest push of
            any client.

    Returns:
        ``client_instance_id``; ``client_id``, ``software_name``, ``software_version``, ``principal``,
        ``client_address`` string; ``recv_ts`` timestamp: of the last push; ``push_interval_ms`` int.
    """
    lasts = last_pushes(df if "push_interval_ms" in df.columns else pushes_of(df))
    silent_ms = F.col("now_ms") - F.col("at_ms") - F.col("away_ms")
    found = lasts.where(F.col("is_expected") & (silent_ms > intervals * F.col("push_interval_ms")))
    return found.select(INSTANCE, *OF_PUSH, "recv_ts", "push_interval_ms")


def last_pushes(pushes: DataFrame, now: datetime | None = None) -> DataFrame:
    """The last push of each instance that has a push interval, but of `twins`.

    Returns:
        ``client_instance_id``, ``recv_ts``, ``push_interval_ms``, ``terminating``, the columns `OF_PUSH`;
        ``is_expected`` boolean: it was no goodbye, and no newer instance of the client id has begun;
        ``at_ms``, ``now_ms``: of the push, and of the latest one of any client; ``away_ms``: time between
        them in which nobody was heard at its broker.
    """
    told = ("recv_ts", *OF_PUSH, "push_interval_ms", "terminating", "broker_id")
    lasts = (
        pushes.where(OF_CLIENTS)
        .groupBy(INSTANCE)
        .agg(F.min("recv_ts").alias("first_ts"), F.max_by(F.struct(*told), "recv_ts").alias("last"))
        .select(INSTANCE, "first_ts", "last.*")
        .where("push_interval_ms > 0")
        .join(F.broadcast(twins(pushes)), INSTANCE, "left_anti")
        .withColumn("at_ms", F.unix_millis("recv_ts"))
    )
    newest = pushes.where(OF_CLIENTS).agg(F.max("recv_ts").alias("now")) if now is None else None
    timed = lasts.withColumn("now", F.lit(now)) if newest is None else lasts.crossJoin(F.broadcast(newest))
    place = Window.partitionBy("broker_id")
    heard_ms, before_ms = F.max("at_ms").over(place), F.lag("at_ms").over(place.orderBy("at_ms"))
    same = Window.partitionBy("client_id", "principal")
    gaps_ms = F.expr("aggregate(filter(gaps, each -> each.end > at_ms), 0L, (sum, each) -> sum + each.gap)")
    since_ms = F.col("now_ms") - F.col("heard_ms")
    is_alone = F.coalesce(F.col("at_ms") - F.col("other_ms") > F.col("limit_ms"), F.lit(True))
    unheard_ms = F.when((since_ms > F.col("limit_ms")) & ~is_alone, since_ms).otherwise(0)
    is_last = (F.col("newest_ts") <= F.col("recv_ts")) & ~F.col("terminating")
    return (
        timed.withColumns(
            {
                "now_ms": F.unix_millis("now"),
                "heard_ms": heard_ms,
                "other_ms": F.when(F.col("at_ms") == heard_ms, before_ms).otherwise(heard_ms),
                "limit_ms": late_ms(F.max_by("push_interval_ms", "at_ms").over(place)),
                "newest_ts": F.max("first_ts").over(same),
            }
        )
        .join(F.broadcast(away(pushes)), "broker_id", "left")
        .withColumns({"away_ms": F.coalesce(gaps_ms, F.lit(0)) + unheard_ms, "is_expected": is_last})
        .select(INSTANCE, *OF_PUSH, *TOLD)
    )


def twins(pushes: DataFrame) -> DataFrame:
    """The instances that a host has observed of clients that push themselves."""
    is_seen = F.coalesce("observed", F.lit(False))
    return (
        pushes.where(OF_CLIENTS)
        .groupBy("client_id", "principal", "client_address", "software_name", "software_version")
        .agg(
            F.collect_set(F.when(is_seen, F.col(INSTANCE))).alias("seen"),
            F.min(is_seen).alias("is_only_seen"),
        )
        .where("not is_only_seen")
        .select(F.explode("seen").alias(INSTANCE))
    )


def late_ms(interval_ms: Column) -> Column:
    """For how long a broker may hear nobody, if a client with this push interval is there."""
    return F.greatest(F.lit(LEAST_AWAY_MS), LATE * interval_ms)


def away(pushes: DataFrame) -> DataFrame:
    """By ``broker_id``: ``gaps``, the ends and the lengths of the times in which nobody was heard."""
    in_order = Window.partitionBy("broker_id").orderBy("end")
    second_ms = F.unix_millis(F.date_trunc("second", "recv_ts"))
    heard = (
        pushes.where(OF_CLIENTS)
        .groupBy("broker_id", second_ms.alias("end"))
        .agg(F.max("push_interval_ms").alias("interval_ms"))
    )
    gap_ms = F.col("end") - F.lag("end").over(in_order)
    found = heard.withColumn("gap", gap_ms).withColumn("limit", late_ms(F.lag("interval_ms").over(in_order)))
    return (
        found.where("gap > limit")
        .groupBy("broker_id")
        .agg(F.collect_list(F.struct("end", "gap")).alias("gaps"))
    )
