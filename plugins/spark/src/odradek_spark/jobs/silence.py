"""Clients that are subscribed but stopped pushing, without a goodbye.

A silence is measured in push intervals in which the host received a push of any client: while the host is
down, or the network in front of it, no client is silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.plugin.troubles import SILENCE
from odradek_spark.jobs.detect import CLOSED, NOT_DELIVERED, OPEN, RECOVERED, SILENT
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.samples import CLIENT, MS_PER_S, THROTTLES
from odradek_spark.tables.schemas import ANOMALIES

FORGOTTEN = timedelta(hours=1)
"""After this time a silent instance is gone for good, and its episode is closed."""


def silence_rules(rules: Sequence[Rule]) -> list[Rule]:
    """The rules about silence; their threshold is a number of push intervals."""
    return [each for each in rules if each.metric == SILENCE]


def silences(
    pushes: DataFrame, points: DataFrame, rules: Sequence[Rule], known: DataFrame, now: datetime
) -> DataFrame:
    """Find new and changed episodes of silence.

    Args:
        pushes: Rows of the table ``pushes``, as far back as a silence can have begun.
        points: Points of the same time, for the labels of clients and the times for which they wait.
        rules: Rules of `silence_rules`; at least one.
        known: Rows of the table ``anomalies``.
        now: The latest receive time in the tables.

    Returns:
        Rows of the table ``anomalies``. ``started_ts``, ``last_ts`` and ``last_recv_ts`` are the time of the
        last push.
    """
    known = known.where(F.col("name") == SILENCE)
    lasts = last_pushes(pushes, points)
    opened = reduce(DataFrame.unionByName, [opened_by(lasts, rule, now) for rule in rules])
    key = ["rule", "client_instance_id", "started_ts"]
    return opened.join(known, key, "left_anti").unionByName(closed(lasts, known, now))


def last_pushes(pushes: DataFrame, points: DataFrame) -> DataFrame:
    """The last push of each instance, with ``heard``: the push intervals since in which somebody pushed."""
    of_instance = Window.partitionBy("client_instance_id")
    slot = F.floor(F.unix_millis("recv_ts") / F.col("push_interval_ms"))
    last = (
        pushes.withColumn("first_ts", F.min("recv_ts").over(of_instance))
        .withColumn("number", F.row_number().over(of_instance.orderBy(F.desc("recv_ts"))))
        .where("number = 1 and push_interval_ms > 0")
        .withColumn("slot", slot)
    )
    intervals = last.select("push_interval_ms").distinct()
    later = Window.partitionBy("push_interval_ms").orderBy(F.desc("slot"))
    slots = (
        pushes.select("recv_ts")
        .crossJoin(F.broadcast(intervals))
        .select("push_interval_ms", slot.alias("slot"))
        .distinct()
        .withColumn("heard", F.row_number().over(later) - 1)
    )
    waits = F.when(F.col("name").isin(*THROTTLES) & ~F.isnan("value"), F.col("value"))
    labels = points.groupBy("client_instance_id").agg(
        F.max("client_rack").alias("client_rack"),
        F.max("group_id").alias("group_id"),
        F.max_by(waits, F.when(waits.isNotNull(), F.col("recv_ts"))).alias("throttle_ms"),
    )
    return last.join(slots, ["push_interval_ms", "slot"]).join(labels, "client_instance_id", "left")


def opened_by(lasts: DataFrame, rule: Rule, now: datetime) -> DataFrame:
    """The instances that are silent by a rule, as new episodes.

    An instance whose client id has a newer instance was restarted: it is not silent.
    """
    interval_ms = F.col("push_interval_ms")
    wait_ms = F.coalesce(F.col("throttle_ms"), F.lit(0.0))
    age_ms = F.unix_millis(F.lit(now)) - F.unix_millis("recv_ts")
    allowed_ms = rule.threshold * interval_ms + rule.for_s * MS_PER_S + wait_ms
    newest = lasts.groupBy("client_id", "principal").agg(F.max("first_ts").alias("newest_ts"))
    silent = (
        lasts.join(newest, ["client_id", "principal"])
        .where(~F.col("terminating") & (age_ms > allowed_ms))
        .where(F.col("heard") > rule.threshold + wait_ms / interval_ms)
        .where("newest_ts <= recv_ts")
    )
    value = F.col("heard").cast("double")
    return silent.select(
        F.lit(rule.id).alias("rule"),
        "client_instance_id",
        F.lit(SILENCE).alias("name"),
        F.lit(None).cast("string").alias("attrs"),
        *CLIENT,
        F.lit(rule.op.value).alias("op"),
        F.lit(rule.threshold).alias("threshold"),
        F.lit(rule.threshold).alias("clear"),
        F.col("recv_ts").alias("started_ts"),
        F.lit(now).alias("fired_ts"),
        F.col("recv_ts").alias("last_ts"),
        F.col("recv_ts").alias("last_recv_ts"),
        F.lit(None).cast("timestamp").alias("closed_ts"),
        F.lit(OPEN).alias("state"),
        F.lit(None).cast("string").alias("reason"),
        F.lit(0).cast("bigint").alias("samples"),
        value.alias("worst"),
        value.alias("last"),
        "push_interval_ms",
        wait_ms.cast("bigint").alias("throttle_ms"),
        F.lit(NOT_DELIVERED).alias("delivered"),
        F.date_format("recv_ts", "yyyy-MM-dd").alias("date"),
    ).select(*ANOMALIES.schema.names)


def closed(lasts: DataFrame, known: DataFrame, now: datetime) -> DataFrame:
    """The open episodes that ended: the instance pushed again, or is gone for good."""
    back = lasts.select("client_instance_id", F.col("recv_ts").alias("back_ts"))
    again = F.coalesce(F.col("back_ts") > F.col("started_ts"), F.lit(False))
    gone = F.col("fired_ts") <= F.lit(now - FORGOTTEN)
    return (
        known.where(F.col("state") == OPEN)
        .join(back, "client_instance_id", "left")
        .where(again | gone)
        .withColumn("state", F.lit(CLOSED))
        .withColumn("reason", F.when(again, F.lit(RECOVERED)).otherwise(F.lit(SILENT)))
        .withColumn("closed_ts", F.when(again, F.col("back_ts")).otherwise(F.lit(now)))
        .select(*ANOMALIES.schema.names)
    )
