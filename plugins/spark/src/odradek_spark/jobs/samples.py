"""The samples that rules compare: values of a metric, its increase over a window, or a ratio of two.

All rules are computed at once, in one frame: each point is joined with the rules that read its metric, and a
rule's parameters are columns. So the cost of a run depends on the number of points, not of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.rules import Aggregate, Op, Rule

INSTANCE = "client_instance_id"
SERIES = ["rule", INSTANCE, "name", "attrs"]
CLIENT = (
    *("client_id", "software_name", "software_version", "principal", "client_address", "client_rack"),
    *("group_id",),
)
"""Columns about the client of an episode."""
DELTA, CUMULATIVE = 1, 2
GAUGE = 1
MS_PER_S = 1000
THROTTLES = (
    "org.apache.kafka.producer.produce.throttle.time.max",
    "org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.max",
)
"""How long a client was throttled, in milliseconds. While it waits, it does not push either."""
LONGEST_WAIT_MS = 3_600_000.0
"""A client that is throttled for longer than an hour has sent a wrong value."""
LABEL = pa.struct({"path": pa.string(), "label": pa.string()})
RULE = pa.schema(
    {
        "rule": pa.string(),
        "metric": pa.string(),
        "per": pa.string(),
        "labels": pa.list_(LABEL),
        "agg": pa.string(),
        "over_ms": pa.int64(),
        "op": pa.string(),
        "threshold": pa.float64(),
        "clear": pa.float64(),
        "hold_ms": pa.float64(),
    }
)
"""A rule as a row. ``metric`` and ``per`` are names of metrics; a series must have the ``labels``."""
AGGREGATES: Mapping[Aggregate, Callable[[Column], Column]] = {
    Aggregate.EACH: F.max,  # two points of a series with the same time
    Aggregate.MAX: F.max,
    Aggregate.MIN: F.min,
    Aggregate.SUM: F.sum,
    Aggregate.AVG: F.avg,
}


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The samples that the rules compare.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``; the columns of `CLIENT`; ``value`` double;
        ``ts``; ``start_ts``: start of the covered interval, null for the previous sample; ``recv_ts``;
        ``push_interval_ms``; ``throttle_ms`` bigint: as the push says; ``op``, ``threshold``, ``clear``: of
        the rule; ``hold_ms`` double: its time; ``worse`` boolean: beyond the threshold; ``beyond`` boolean:
        beyond the clearing threshold.
    """
    table = points.sparkSession.createDataFrame(rule_rows(rules))
    steps = increases(matched(finite(points), table))
    ratio = F.when(F.col("divisor") != 0, F.col("value") / F.col("divisor"))
    return (
        by_series(steps, table)
        .withColumns({name: over_window(name, rules) for name in ("value", "divisor")})
        .withColumn("value", F.when(F.col("per").isNull(), F.col("value")).otherwise(ratio))
        .where("value is not null and not isnan(value)")  # infinite values can leave no number
        .withColumns({"worse": beyond("threshold"), "beyond": beyond("clear")})
        .drop("divisor", "metric", "per", "labels", "agg", "over_ms")
    )


def finite(points: DataFrame) -> DataFrame:
    """The points with a finite ``value``, with ``throttle_ms`` of their push; grouped by instance."""
    value = F.coalesce("value", F.col("value_int").cast("double"))
    rows = points.withColumn("value", value).where(F.col("value").isNotNull() & ~F.isnan("value"))
    # A push is of one instance. With it as the first key, Spark moves rows once for all windows and groups.
    of_push = F.max(waited_ms(F.col("value"))).over(Window.partitionBy(INSTANCE, *SOURCE_KEY))
    throttle_ms = F.coalesce(of_push, F.lit(0.0)).cast("bigint")
    return rows.repartition(INSTANCE).withColumn("throttle_ms", throttle_ms)


def waited_ms(value: Column) -> Column:
    """The time for which a client was throttled, within sensible bounds; null for other metrics."""
    bounded = F.greatest(F.lit(0.0), F.least(value, F.lit(LONGEST_WAIT_MS)))
    return F.when(F.col("name").isin(*THROTTLES) & value.isNotNull(), bounded)


def matched(points: DataFrame, table: DataFrame) -> DataFrame:
    """A row for each point and rule that reads it, with ``rule``, ``metric``, ``per``, ``agg``, ``over_ms``.

    Of a ratio, ``ts`` is the latest time in the push: Java gives each metric of a push a time of its own.
    """
    names = F.array_distinct(F.array_compact(F.array("metric", "per")))
    read = table.select("rule", "metric", "per", "labels", "agg", "over_ms", F.explode(names).alias("read"))
    of_push = F.max("ts").over(Window.partitionBy(INSTANCE, *SOURCE_KEY, "rule"))
    return (
        points.join(F.broadcast(read), F.col("name") == F.col("read"))
        .where("forall(labels, each -> get_json_object(attrs, each.path) = each.label)")
        .drop("labels", "read")
        .withColumn("ts", F.when(F.col("per").isNull(), F.col("ts")).otherwise(of_push))
    )


def rule_rows(rules: Iterable[Rule]) -> pa.Table:
    """The rules as rows of `RULE`."""
    rows = [
        {
            "rule": each.id,
            "metric": each.metric,
            "per": each.per or None,
            "labels": [{"path": f"$['{key}']", "label": label} for key, label in each.attrs.items()],
            "agg": each.agg.value,
            "over_ms": over_ms(each),
            "op": each.op.value,
            "threshold": each.threshold,
            "clear": each.threshold if each.clear is None else each.clear,
            "hold_ms": each.for_s * MS_PER_S,
        }
        for each in rules
    ]
    return pa.Table.from_pylist(rows, RULE)


def over_ms(rule: Rule) -> int:
    """The length of a rule's window in milliseconds; 0 compares the values."""
    return round(rule.over_s * MS_PER_S)


def increases(rows: DataFrame) -> DataFrame:
    """For rules with a window: sums only, each value replaced by its increase since the previous one."""
    in_order = Window.partitionBy(*SERIES).orderBy("ts", *SOURCE_KEY)
    before = F.lag("value").over(in_order)
    added = F.when(F.col("value") < before, F.col("value")).otherwise(F.col("value") - before)
    step = F.when(F.col("temporality") == DELTA, F.col("value")).otherwise(F.coalesce(added, F.lit(0.0)))
    has_window = F.col("over_ms") > 0
    is_sum = F.col("temporality").isin(DELTA, CUMULATIVE)
    return rows.where(~has_window | is_sum).withColumn(
        "value", F.when(has_window, step).otherwise(F.col("value"))
    )


def by_series(rows: DataFrame, table: DataFrame) -> DataFrame:
    """One row for each series of a rule and time; its ``divisor`` is the value of the metric ``per``."""
    covers_interval = (F.col("temporality") == DELTA) | (F.col("kind") == GAUGE)
    moved = F.col("ts") - F.col("client_ts")  # if `ts` was corrected for a wrong clock, shift the start too
    start = F.when(covers_interval & (F.col("start_ts") <= F.col("client_ts")), F.col("start_ts") + moved)
    grouped = (
        rows.withColumns(
            {
                "attrs": F.when(F.col("agg") == Aggregate.EACH.value, F.col("attrs")),
                "start_ts": start,
                "divisor": F.when(F.col("name") == F.col("per"), F.col("value")),
                "value": F.when(F.col("name") == F.col("metric"), F.col("value")),
                "name": F.col("metric"),
            }
        )
        .groupBy(*SERIES, "ts")
        .agg(
            every_aggregate("value"),
            every_aggregate("divisor"),
            *(F.max(name).alias(name) for name in CLIENT),
            F.min("start_ts").alias("start_ts"),
            F.max("recv_ts").alias("recv_ts"),
            F.max("push_interval_ms").alias("push_interval_ms"),
            F.max("throttle_ms").alias("throttle_ms"),
        )
    )
    return grouped.join(F.broadcast(table), "rule").withColumns(
        {name: chosen_aggregate(name) for name in ("value", "divisor")}
    )


def every_aggregate(name: str) -> Column:
    """All aggregates of a column, as a struct with its name."""
    return F.struct(*(of(F.col(name)).alias(each.value) for each, of in AGGREGATES.items())).alias(name)


def chosen_aggregate(name: str) -> Column:
    """The rule's aggregate, of `every_aggregate`."""
    return F.coalesce(*(F.when(F.col("agg") == each.value, F.col(f"{name}.{each}")) for each in AGGREGATES))


def over_window(name: str, rules: Iterable[Rule]) -> Column:
    """The sum of a column over the rule's window, if it has one; otherwise the column itself."""
    ordered = Window.partitionBy(*SERIES).orderBy(F.unix_millis("ts"))
    lengths = {over_ms(each) for each in rules} - {0}
    return reduce(
        lambda value, length: F.when(
            F.col("over_ms") == length, F.sum(name).over(ordered.rangeBetween(1 - length, 0))
        ).otherwise(value),
        sorted(lengths),
        F.col(name),
    )


def beyond(limit: str) -> Column:
    """Whether the value is beyond the limit in a column."""
    value, op = F.col("value"), F.col("op")
    comparisons = {
        Op.ABOVE: value > F.col(limit),
        Op.AT_LEAST: value >= F.col(limit),
        Op.BELOW: value < F.col(limit),
        Op.AT_MOST: value <= F.col(limit),
    }
    return F.coalesce(*(F.when(op == each.value, holds) for each, holds in comparisons.items()))
