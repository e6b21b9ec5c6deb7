"""Anomalies: values beyond a threshold for longer than a rule allows (proactive monitoring, KIP-714).

The method is "gaps and islands". A sample covers an interval: a delta of a sum covers the time since its
start, any other sample the time since the previous one; intervals never overlap. Consecutive samples beyond
the threshold form an island; a sample within the threshold, or a silence, ends it. An island that is long
enough is an episode: it is opened once, continued by later runs and closed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.rules import Aggregate, Op, Rule
from odradek_spark.tables.schemas import ANOMALIES

SILENCE_INTERVALS = 2.5
"""After this many push intervals without a sample, the state is unknown."""
OPEN, CLOSED = "open", "closed"
RECOVERED, SILENT = "recovered", "silent"
SERIES = ["rule", "client_instance_id", "name", "attrs"]
EPISODE = [*SERIES, "started_ts"]
"""The key of an episode."""
DELTA = 1
GAUGE = 1
MS_PER_S = 1000
SAMPLE = [
    *SERIES,
    "client_id",
    "start_ts",
    "ts",
    "recv_ts",
    "value",
    "worst",
    "samples",
    "push_interval_ms",
    "op",
    "threshold",
    "beyond",
    "fired_ts",
]
AT_LAST = [
    "value",
    "recv_ts",
    "next_beyond",
    "next_gap",
    "push_interval_ms",
    "client_id",
    "op",
    "threshold",
]


def detect(points: DataFrame, rules: Sequence[Rule], known: DataFrame, now: datetime) -> DataFrame:
    """Find new and changed episodes.

    Args:
        points: Rows of the table ``points`` that count, with ``push_interval_ms``
            (`odradek_spark.jobs.accepted.accepted`). They must reach back far enough to have every island
            that is not an episode yet completely.
        rules: The rules; at least one.
        known: Rows of the table ``anomalies``: all open ones, and the closed ones that ended within the time
            of ``points``. Samples that they cover are ignored, so that no episode is opened twice.
        now: The latest receive time in the tables.

    Returns:
        The table ``anomalies``, a row for each episode that was opened, continued or closed:

        * ``rule``, ``client_instance_id``, ``client_id``, ``name`` string; ``attrs`` string: labels of the
          series, null if the rule aggregates series; ``op`` string, ``threshold`` double: of the rule.
        * ``started_ts`` timestamp: the beginning; with the rule, instance, name and labels it is the key of
          an episode. ``fired_ts``: the first sample after the rule's time; ``last_ts``: the last sample, and
          ``last_recv_ts``: its receive time. The other times are by the client's clock.
        * ``state`` string ``open`` or ``closed``; ``closed_ts`` timestamp, null while open; ``reason``:
          ``recovered`` (a sample was within the threshold) or ``silent`` (no samples for 2.5 push intervals).
        * ``samples`` bigint: their number; ``worst``, ``last`` double: of the values.
        * ``push_interval_ms`` int: of the instance; ``date`` string: of ``started_ts``.
    """
    found = unseen(samples(points, rules), known)
    rows = found.select(*SAMPLE).unionByName(carried(known).select(*SAMPLE))
    return told(islands(rows, rules), now).select(*ANOMALIES.schema.names)


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The samples that the rules compare.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``, ``client_id``, ``value`` double; ``ts``;
        ``start_ts``: start of the covered interval, null for the previous sample; ``recv_ts``;
        ``push_interval_ms``; ``op``, ``threshold``: of the rule; ``beyond`` boolean: beyond the threshold.
    """
    frames = [compared(points, rule) for rule in rules]
    return reduce(DataFrame.unionByName, frames)


def compared(points: DataFrame, rule: Rule) -> DataFrame:
    """The finite values of a rule's metric, one for each series and time."""
    value = F.coalesce("value", F.col("value_int").cast("double"))
    rows = points.where(F.col("name") == rule.metric).withColumn("value", value)
    rows = rows.where(F.col("value").isNotNull() & ~F.isnan("value"))
    for key, label in rule.attrs.items():
        rows = rows.where(F.get_json_object("attrs", f"$['{key}']") == label)
    covers_interval = (F.col("temporality") == DELTA) | (F.col("kind") == GAUGE)
    moved = F.col("ts") - F.col("client_ts")  # if `ts` was corrected for a wrong clock, shift the start too
    start = F.when(covers_interval & (F.col("start_ts") <= F.col("client_ts")), F.col("start_ts") + moved)
    attrs = F.col("attrs") if rule.agg is Aggregate.EACH else F.lit(None).cast("string")
    joined = F.max if rule.agg is Aggregate.EACH else getattr(F, rule.agg.value)
    return (
        rows.withColumn("attrs", attrs)
        .withColumn("rule", F.lit(rule.id))
        .withColumn("start_ts", start)
        .groupBy(*SERIES, "ts")
        .agg(
            joined("value").alias("value"),
            F.max("client_id").alias("client_id"),
            F.min("start_ts").alias("start_ts"),
            F.max("recv_ts").alias("recv_ts"),
            F.max("push_interval_ms").alias("push_interval_ms"),
        )
        .withColumn("op", F.lit(rule.op.value))
        .withColumn("threshold", F.lit(rule.threshold))
        .withColumn("beyond", beyond(F.col("value"), rule))
    )


def beyond(value: Column, rule: Rule) -> Column:
    match rule.op:
        case Op.ABOVE:
            return value > rule.threshold
        case Op.AT_LEAST:
            return value >= rule.threshold
        case Op.BELOW:
            return value < rule.threshold
        case Op.AT_MOST:
            return value <= rule.threshold


def unseen(found: DataFrame, known: DataFrame) -> DataFrame:
    """The samples that no known episode covers."""
    seen = known.groupBy(*SERIES).agg(F.max("last_ts").alias("seen_ts"))
    same = [found[key].eqNullSafe(seen[key]) for key in SERIES]
    return (
        found.join(seen, same, "left")
        .where("seen_ts is null or ts > seen_ts")
        .select(*[found[name] for name in found.columns])
        .withColumn("worst", F.col("value"))
        .withColumn("samples", F.lit(1).cast("bigint"))
        .withColumn("fired_ts", F.lit(None).cast("timestamp"))
    )


def carried(known: DataFrame) -> DataFrame:
    """Open episodes, each as a sample that begins its island."""
    return known.where(F.col("state") == OPEN).select(
        *SERIES,
        "client_id",
        F.col("started_ts").alias("start_ts"),
        F.col("last_ts").alias("ts"),
        F.col("last_recv_ts").alias("recv_ts"),
        F.col("last").alias("value"),
        "worst",
        "samples",
        "push_interval_ms",
        "op",
        "threshold",
        F.lit(True).alias("beyond"),
        "fired_ts",
    )


def islands(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Group the samples beyond the threshold into islands.

    Returns:
        The columns of these samples; ``island`` bigint; ``from_ts`` timestamp: the beginning of the island;
        ``long`` boolean: at this sample the island had exceeded the rule's time; ``next_beyond`` and
        ``next_gap`` of the next sample, null if there is none.
    """
    in_order = Window.partitionBy(*SERIES).orderBy("ts")
    before = F.lag("ts").over(in_order)
    silence_ms = F.unix_millis(F.coalesce("start_ts", "ts")) - F.unix_millis(before)
    gap = F.coalesce(silence_ms > SILENCE_INTERVALS * F.col("push_interval_ms"), F.lit(False))
    breaks = F.col("gap") | ~F.coalesce(F.lag("beyond").over(in_order), F.lit(False))
    since = F.when(F.col("start_ts").isNotNull(), F.greatest("start_ts", before))
    numbered = (
        rows.withColumn("gap", gap)
        .withColumn("begin", F.coalesce(since, F.when(~F.col("gap"), before), "ts"))
        .withColumn("next_beyond", F.lead("beyond").over(in_order))
        .withColumn("next_gap", F.lead("gap").over(in_order))
        .withColumn("island", F.sum(breaks.cast("int")).over(in_order))
        .where("beyond")
    )
    whole = Window.partitionBy(*SERIES, "island")
    lasted_ms = F.unix_millis("ts") - F.unix_millis("from_ts")
    return numbered.withColumn("from_ts", F.min("begin").over(whole)).withColumn(
        "long", lasted_ms > hold_ms(rules)
    )


def told(rows: DataFrame, now: datetime) -> DataFrame:
    """A row for each island that is an episode; if its rule was removed, it stays open until it is silent."""
    last = F.max_by(F.struct(*AT_LAST), "ts")
    upward = F.col("op").isin(*(each.value for each in Op if each.upward))
    found = (
        rows.groupBy(*SERIES, "island", F.col("from_ts").alias("started_ts"))
        .agg(
            F.coalesce(F.min("fired_ts"), F.min(F.when(F.col("long"), F.col("ts")))).alias("fired_ts"),
            F.max("ts").alias("last_ts"),
            F.sum("samples").alias("samples"),
            F.max("worst").alias("highest"),
            F.min("worst").alias("lowest"),
            last.alias("at_last"),
        )
        .where("fired_ts is not null")
        .select("*", "at_last.*")
    )
    unheard_ms = F.unix_millis(F.lit(now)) - F.unix_millis("recv_ts")
    silent = F.col("next_gap") | (
        F.col("next_beyond").isNull() & (unheard_ms > SILENCE_INTERVALS * F.col("push_interval_ms"))
    )
    reason = F.when(silent, F.lit(SILENT)).when(~F.col("next_beyond"), F.lit(RECOVERED))
    return (
        found.withColumn("reason", reason)
        .withColumn("state", F.when(F.col("reason").isNull(), F.lit(OPEN)).otherwise(F.lit(CLOSED)))
        .withColumn("closed_ts", F.when(F.col("reason").isNotNull(), F.col("last_ts")))
        .withColumn("worst", F.when(upward, F.col("highest")).otherwise(F.col("lowest")))
        .withColumnRenamed("value", "last")
        .withColumnRenamed("recv_ts", "last_recv_ts")
        .withColumn("date", F.date_format("started_ts", "yyyy-MM-dd"))
    )


def hold_ms(rules: Sequence[Rule]) -> Column:
    """The time of each row's rule in milliseconds; null if the rule was removed."""
    pairs = [F.lit(each) for rule in rules for each in (rule.id, rule.for_s * MS_PER_S)]
    return F.create_map(*pairs)[F.col("rule")]
