"""The samples that rules compare: values of a metric, its increase over a window, or a ratio of two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.rules import Aggregate, Op, Rule

SERIES = ["rule", "client_instance_id", "name", "attrs"]
CLIENT = [
    "client_id",
    "software_name",
    "software_version",
    "principal",
    "client_address",
    "client_rack",
    "group_id",
]
"""Columns about the client of an episode."""
DELTA, CUMULATIVE = 1, 2
GAUGE = 1
MS_PER_S = 1000
THROTTLES = (
    "org.apache.kafka.producer.produce.throttle.time.max",
    "org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.max",
)
"""How long a client was throttled, in milliseconds. While it waits, it does not push either."""


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The samples that the rules compare.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``; the columns of `CLIENT`; ``value`` double;
        ``ts``; ``start_ts``: start of the covered interval, null for the previous sample; ``recv_ts``;
        ``push_interval_ms``; ``throttle_ms`` bigint: as the push says; ``op``, ``threshold``, ``clear``: of
        the rule; ``hold_ms`` double: its time; ``worse`` boolean: beyond the threshold; ``beyond`` boolean:
        beyond the clearing threshold.
    """
    readable = finite(points)
    frames = [compared(readable, rule) for rule in rules]
    return reduce(DataFrame.unionByName, frames)


def finite(points: DataFrame) -> DataFrame:
    """The points with a finite ``value``, with ``throttle_ms`` of their push."""
    value = F.coalesce("value", F.col("value_int").cast("double"))
    rows = points.withColumn("value", value).where(F.col("value").isNotNull() & ~F.isnan("value"))
    waits = F.when(F.col("name").isin(*THROTTLES), F.col("value"))
    of_push = F.max(waits).over(Window.partitionBy(*SOURCE_KEY))
    return rows.withColumn("throttle_ms", F.coalesce(of_push, F.lit(0.0)).cast("bigint"))


def compared(points: DataFrame, rule: Rule) -> DataFrame:
    """The values of a rule, one for each series and time."""
    rows = points.where(F.col("name").isin(*rule.names))
    for key, label in rule.attrs.items():
        rows = rows.where(F.get_json_object("attrs", f"$['{key}']") == label)
    if rule.per:  # Java gives each metric of a push a time of its own
        rows = rows.withColumn("ts", F.max("ts").over(Window.partitionBy(*SOURCE_KEY)))
    if rule.over_s:
        rows = increases(rows)
    covers_interval = (F.col("temporality") == DELTA) | (F.col("kind") == GAUGE)
    moved = F.col("ts") - F.col("client_ts")  # if `ts` was corrected for a wrong clock, shift the start too
    start = F.when(covers_interval & (F.col("start_ts") <= F.col("client_ts")), F.col("start_ts") + moved)
    attrs = F.col("attrs") if rule.agg is Aggregate.EACH else F.lit(None).cast("string")
    joined = F.max if rule.agg is Aggregate.EACH else getattr(F, rule.agg.value)
    grouped = (
        rows.withColumn("attrs", attrs)
        .withColumn("rule", F.lit(rule.id))
        .withColumn("start_ts", start)
        .withColumn("divisor", F.when(F.col("name") == rule.per, F.col("value")))
        .withColumn("value", F.when(F.col("name") == rule.metric, F.col("value")))
        .withColumn("name", F.lit(rule.metric))
        .groupBy(*SERIES, "ts")
        .agg(
            joined("value").alias("value"),
            joined("divisor").alias("divisor"),
            *(F.max(name).alias(name) for name in CLIENT),
            F.min("start_ts").alias("start_ts"),
            F.max("recv_ts").alias("recv_ts"),
            F.max("push_interval_ms").alias("push_interval_ms"),
            F.max("throttle_ms").alias("throttle_ms"),
        )
    )
    value = F.col("value")
    clear = rule.threshold if rule.clear is None else rule.clear
    return (
        grouped.withColumn("divisor", over_window(F.col("divisor"), rule))
        .withColumn("value", over_window(F.col("value"), rule))
        .withColumn("value", F.when(F.col("divisor") != 0, value / F.col("divisor")) if rule.per else value)
        .where("value is not null")
        .drop("divisor")
        .withColumn("op", F.lit(rule.op.value))
        .withColumn("threshold", F.lit(rule.threshold))
        .withColumn("clear", F.lit(clear))
        .withColumn("hold_ms", F.lit(rule.for_s * MS_PER_S))
        .withColumn("worse", beyond(value, rule.op, rule.threshold))
        .withColumn("beyond", beyond(value, rule.op, clear))
    )


def increases(rows: DataFrame) -> DataFrame:
    """Sums only, each value replaced by its increase since the previous one."""
    in_order = Window.partitionBy("client_instance_id", "name", "attrs").orderBy("ts", *SOURCE_KEY)
    before = F.lag("value").over(in_order)
    added = F.when(F.col("value") < before, F.col("value")).otherwise(F.col("value") - before)
    step = F.when(F.col("temporality") == DELTA, F.col("value")).otherwise(F.coalesce(added, F.lit(0.0)))
    return rows.where(F.col("temporality").isin(DELTA, CUMULATIVE)).withColumn("value", step)


def over_window(value: Column, rule: Rule) -> Column:
    """The sum over the rule's window, if it has one."""
    if not rule.over_s:
        return value
    ordered = Window.partitionBy(*SERIES).orderBy(F.unix_millis("ts"))
    return F.sum(value).over(ordered.rangeBetween(1 - round(rule.over_s * MS_PER_S), 0))


def beyond(value: Column, op: Op, threshold: float) -> Column:
    """Whether a value is beyond a threshold."""
    match op:
        case Op.ABOVE:
            return value > threshold
        case Op.AT_LEAST:
            return value >= threshold
        case Op.BELOW:
            return value < threshold
        case Op.AT_MOST:
            return value <= threshold
