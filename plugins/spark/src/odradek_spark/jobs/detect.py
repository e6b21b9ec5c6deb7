"""Anomalies: values beyond a threshold for longer than a rule allows (proactive monitoring, KIP-714).

Gaps and islands. A sample speaks for an interval: a step of a sum for the time since its start, anything else
for the time since the sample before; never for what the sample before spoke for. Samples beyond the threshold
that follow each other are an island; a sample that is not, or a silence, ends it. An island that is long
enough is an episode, which is opened once, goes on with later runs and is closed once.
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
"""After that many push intervals without a sample nobody knows what happened."""
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
    """Find the episodes that are new or have changed.

    Args:
        points: Rows of the table ``points`` that count, with ``push_interval_ms``
            (`odradek_spark.jobs.accepted.accepted`): from so long before the newest that every island that is
            no episode yet is there whole.
        rules: What is an anomaly; at least one.
        known: Rows of the table ``anomalies``: all that are open, and the closed ones that ended within
            the time of ``points``. What they speak for is not looked at again, so that nothing fires twice.
        now: The latest receive time that the tables know.

    Returns:
        The table ``anomalies``, a row for each episode that was opened, has gone on or was closed:

        * ``rule``, ``client_instance_id``, ``client_id``, ``name`` string; ``attrs`` string: labels of the
          series, null where the rule puts series together; ``op`` string, ``threshold`` double: the rule's.
        * ``started_ts`` timestamp: when it began to be so; with the four texts the key of an episode.
          ``fired_ts``: the sample with which it had lasted too long; ``last_ts``: the last sample of it, and
          ``last_recv_ts``: when the host got that. The others are by the clock of the client.
        * ``state`` string ``open`` or ``closed``; ``closed_ts`` timestamp, null while open; ``reason``:
          ``recovered`` (a sample was fine) or ``silent`` (no samples for 2.5 push intervals).
        * ``samples`` bigint; ``worst``, ``last`` double: of its values.
        * ``push_interval_ms`` int: of the instance; ``date`` string: of ``started_ts``.
    """
    found = unseen(samples(points, rules), known)
    rows = found.select(*SAMPLE).unionByName(carried(known).select(*SAMPLE))
    return told(islands(rows, rules), now).select(*ANOMALIES.schema.names)


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """What the rules look at.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``, ``client_id``, ``value`` double; ``ts``;
        ``start_ts``: since when it speaks, null for since the sample before; ``recv_ts``;
        ``push_interval_ms``; ``op``, ``threshold``: the rule's; ``beyond`` boolean: the threshold.
    """
    frames = [compared(points, rule) for rule in rules]
    return reduce(DataFrame.unionByName, frames)


def compared(points: DataFrame, rule: Rule) -> DataFrame:
    """The values of a rule's metric: finite ones, one for each series and time."""
    value = F.coalesce("value", F.col("value_int").cast("double"))
    rows = points.where(F.col("name") == rule.metric).withColumn("value", value)
    rows = rows.where(F.col("value").isNotNull() & ~F.isnan("value"))
    for key, label in rule.attrs.items():
        rows = rows.where(F.get_json_object("attrs", f"$['{key}']") == label)
    covers_interval = (F.col("temporality") == DELTA) | (F.col("kind") == GAUGE)
    moved = F.col("ts") - F.col("client_ts")  # a clock that is far off moves the beginning with the end
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
    """Samples that no episode has spoken for, as islands of their own."""
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
    """Open episodes as the samples that they begin with."""
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
    """Samples beyond the threshold, with how long it had been so by then.

    Returns:
        The columns of the samples that are beyond, ``island`` bigint; ``from_ts`` timestamp: when the island
        began; ``long`` boolean: it had lasted too long by then; ``next_beyond`` and ``next_gap`` of the
        sample that follows, null if none does.
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
    """A row for each island that is an episode; one whose rule is gone stays until it is silent."""
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
    """How long the rule of each row has to hold; null where it is gone."""
    pairs = [F.lit(each) for rule in rules for each in (rule.id, rule.for_s * MS_PER_S)]
    return F.create_map(*pairs)[F.col("rule")]
