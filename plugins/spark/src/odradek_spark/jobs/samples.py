"""The samples that rules compare: values of a metric, its increase over a window, or a ratio of two.

All rules are computed at once, in one frame: each point is joined with the rules that read its metric, and a
rule's parameters are columns. So the cost of a run depends on the number of points, not of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.troubles import THROTTLED, Kind
from odradek_spark.jobs.accepted import SOURCE_KEY
from odradek_spark.jobs.judged import judged
from odradek_spark.jobs.rules import Aggregate, Op, Rule
from odradek_spark.jobs.windows import (
    COUNTED_FROM_MS,
    INSTANCE,
    MS_PER_S,
    SERIES,
    age_ms,
    increase,
    placed,
    silence_ms,
)

CLIENT = (
    *("client_id", "software_name", "software_version", "principal", "client_address", "client_rack"),
    *("group_id",),
)
"""Columns about the client of an episode."""
DELTA, CUMULATIVE = 1, 2
GAUGE = 1
MUTED_MS, MUTED_INTERVALS = 900_000, 3
"""A client that was throttled at its last push is not lost for so long: its quota holds back its pushes."""
COORDINATOR = r"(node-)?[12]\d{9}"
"""How older clients of Java call the connection to the coordinator of their group."""
SKIPPED = "coalesce(get_json_object(attrs, skip_path), node_id, '')"
OF_PUSH = [INSTANCE, *SOURCE_KEY]
OF_RULE = ["rule", "metric"]
OF_MATCH = (
    *(*OF_RULE, "labels", "skip_path", "skip", "is_whole", "agg", "over_ms", "keeps", "is_early"),
    "alsos",
)
OF_SAMPLE = (
    *("is_ratio", "over_ms", "op", "threshold", "clear", "hold_ms", "is_early", "keeps", "steps", "moves"),
    "explained",
)
"""Columns of a rule that its points and its samples need."""
LATEST = ("recv_ts", "push_interval_ms", "throttle_ms", "terminating", "unless_ts", "read")
LABEL = pa.struct({"path": pa.string(), "label": pa.string()})
READ = pa.struct(
    {
        "read": pa.string(),
        "part": pa.string(),
        "if_op": pa.string(),
        "if_threshold": pa.float64(),
        "if_ms": pa.int64(),
    }
)
"""A metric that a rule reads, as ``value``, ``per``, ``position``, ``unless`` or ``also`` with a number; of a
condition also what makes it hold."""
RULE = pa.schema(
    {
        "rule": pa.string(),
        "metric": pa.string(),
        "reads": pa.list_(READ),
        "labels": pa.list_(LABEL),
        "skip_path": pa.string(),
        "skip": pa.string(),
        "is_whole": pa.bool_(),
        "agg": pa.string(),
        "is_ratio": pa.bool_(),
        "over_ms": pa.int64(),
        "op": pa.string(),
        "threshold": pa.float64(),
        "clear": pa.float64(),
        "hold_ms": pa.float64(),
        "is_early": pa.bool_(),
        "keeps": pa.bool_(),
        "steps": pa.int32(),
        "moves": pa.bool_(),
        "explained": pa.int32(),
        "alsos": pa.int32(),
    }
)
"""A rule as a row. A series must have the ``labels``, and no label that matches ``skip``; a rule that is
``is_early`` asks from the first push to the last one."""
AGGREGATES: Mapping[Aggregate, Callable[[Column], Column]] = {
    Aggregate.EACH: F.max,  # two points of a series with the same time
    Aggregate.MAX: F.max,
    Aggregate.MIN: F.min,
    Aggregate.SUM: F.sum,
    Aggregate.AVG: F.avg,
}


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The samples that the rules compare.

    Args:
        points: Rows of `odradek_spark.jobs.accepted.accepted`.
        rules: The rules.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``; the columns of `CLIENT`; ``value`` double;
        ``ts``; ``start_ts``: start of the covered interval, null for the previous sample; ``recv_ts``;
        ``push_interval_ms``; ``throttle_ms`` bigint: how long no push may come, since the client is
        throttled; ``op``, ``threshold``, ``clear``, ``keeps``: of the rule; ``hold_ms`` double: its time;
        ``terminating``; ``worse`` boolean: beyond the threshold, and all conditions of the rule hold;
        ``beyond`` boolean: the same with the clearing threshold.
    """
    table = points.sparkSession.createDataFrame(rule_rows(rules))
    rows = conditioned(matched(stepped(points), table), max(len(each.also) for each in rules))
    lives = lives_of(points) if any(each.explained for each in rules) else None
    return judged(by_series(rows, table), lives)


def stepped(points: DataFrame) -> DataFrame:
    """The points with a number as ``value``; grouped by instance.

    ``step`` is the increase of a sum since the point before; ``is_begin``: it is from before the client was
    seen. ``throttle_ms`` is that of the push.
    """
    value = F.coalesce("value", F.col("value_int").cast("double"))
    rows = points.withColumn("value", value).where(F.col("value").isNotNull() & ~F.isnan("value"))
    in_order = Window.partitionBy(INSTANCE, "name", "attrs").orderBy("ts", *SOURCE_KEY)
    before, now = F.lag("value").over(in_order), F.col("value")
    added = (
        F.when(now < before, now)
        .when(before.isNotNull(), now - before)
        .when(F.col("recv_ts") == F.col("first_ts"), now)
        .otherwise(0.0)
    )
    is_throttled = reduce(
        or_, ((F.col("name") == each.metric) & (F.col("step") > each.threshold) for each in THROTTLED)
    )
    muted_ms = F.greatest(F.lit(MUTED_MS), MUTED_INTERVALS * F.col("push_interval_ms"))
    is_muted = F.max(is_throttled).over(Window.partitionBy(*OF_PUSH))
    return (
        # A push is of one instance. With it as the first key, Spark moves rows once for all that follows.
        rows.repartition(INSTANCE)
        .withColumns(
            {
                "step": F.when(F.col("temporality") == CUMULATIVE, added).otherwise(now),
                "is_begin": age_ms("first_ts", "recv_ts") < COUNTED_FROM_MS,
            }
        )
        .withColumn("throttle_ms", F.when(is_muted, muted_ms).otherwise(0).cast("bigint"))
    )


def matched(points: DataFrame, table: DataFrame) -> DataFrame:
    """A row for each point and rule that reads it, with the columns of `READ` and those of the rule.

    If a rule reads several metrics, ``ts`` is the latest time in the push: Java gives each a time of its own.
    """
    read = table.select(*OF_MATCH, F.size("reads").alias("parts"), F.explode("reads").alias("of"))
    depth = F.coalesce(F.size(F.json_object_keys("attrs")), F.lit(0))
    least = F.min(depth).over(Window.partitionBy(*OF_PUSH, *OF_RULE, "part", "name"))
    of_push = F.max("ts").over(Window.partitionBy(*OF_PUSH, *OF_RULE))
    is_every = (F.col("part") == "position") | ((F.col("part") == "value") & ~F.col("is_whole"))
    return (
        points.join(F.broadcast(read.select(*OF_MATCH, "parts", "of.*")), F.col("name") == F.col("read"))
        .where("forall(labels, each -> get_json_object(attrs, each.path) = each.label)")
        .where(f"part <> 'value' or skip is null or not {SKIPPED} rlike skip")
        .withColumns(
            {
                "is_least": is_every | (depth == least),
                "ts": F.when(F.col("parts") == 1, F.col("ts")).otherwise(of_push),
            }
        )
        .where("is_least")
    )


def rule_rows(rules: Iterable[Rule]) -> pa.Table:
    """The rules as rows of `RULE`."""
    return pa.Table.from_pylist([rule_row(each) for each in rules], RULE)


def rule_row(rule: Rule) -> dict[str, Any]:
    trouble = rule.trouble
    is_loss = trouble is not None and trouble.kind is Kind.LOSS  # in its window for longer than it must hold
    label, pattern = rule.skip or ("", "")
    return {
        "rule": rule.id,
        "metric": rule.metric,
        "reads": list(reads(rule)),
        "labels": [{"path": f"$['{key}']", "label": text} for key, text in rule.attrs.items()],
        "skip_path": f"$['{label}']",
        "skip": f"^({pattern}|{COORDINATOR})$" if pattern else None,
        "is_whole": rule.is_whole,
        "agg": rule.agg.value,
        "is_ratio": bool(rule.per),
        "over_ms": round(rule.over_s * MS_PER_S),
        "op": rule.op.value,
        "threshold": rule.threshold,
        "clear": rule.threshold if rule.clear is None else rule.clear,
        "hold_ms": 0.0 if is_loss else rule.for_s * MS_PER_S,
        "is_early": trouble is None or trouble.begins_at_first,
        "keeps": trouble is not None and trouble.keeps,
        "steps": trouble.steps if trouble is not None else 0,
        "moves": trouble.moves if trouble is not None else None,
        "explained": rule.explained,
        "alsos": len(rule.also),
    }


def reads(rule: Rule) -> Iterator[dict[str, Any]]:
    """The metrics that a rule reads, each as a `READ`."""
    for part in ("value", "per", "position"):
        name = rule.metric if part == "value" else getattr(rule, part)
        if name:
            yield {"read": name, "part": part}
    conditions = [("unless", each) for each in rule.unless]
    conditions += [(f"also{number}", each) for number, each in enumerate(rule.also)]
    for part, each in conditions:
        yield {
            "read": each.metric,
            "part": part,
            "if_op": each.op,
            "if_threshold": each.threshold,
            "if_ms": round(each.over_s * MS_PER_S),
        }


def conditioned(rows: DataFrame, alsos: int) -> DataFrame:
    """The values and divisors of rules, with what the conditions of their rule say.

    ``is_asked``: all hold that must; ``unless_ts``: when one held last that explains the trouble; ``read``:
    what was read of the topic since the push before.
    """
    of_series = [INSTANCE, *OF_RULE, "part", "name", "attrs"]
    of_push = Window.partitionBy(*OF_PUSH, *OF_RULE)
    until_now = Window.partitionBy(INSTANCE, *OF_RULE).orderBy("ts")
    found = F.when(F.col("if_ms") > 0, increase("step", of_series)).otherwise(F.col("step"))
    is_above, limit = F.col("if_op") == Op.ABOVE.value, F.col("if_threshold")
    explains = (F.col("part") == "unless") & F.col("holds")
    position = F.when(F.col("part") == "position", F.col("step"))
    of_topic = F.sum(position).over(Window.partitionBy(*OF_PUSH, *OF_RULE, "topic"))
    of_all = F.sum(F.when(F.col("topic").isNull(), position)).over(of_push)
    is_asked = F.lit(True)
    for number in range(alsos):
        of_part = F.when(F.col("part") == f"also{number}", F.col("holds"))
        # Of several series, one that is above a limit is enough, and all must be below one.
        one, every = F.max(of_part).over(of_push), F.min(of_part).over(of_push)
        holds = F.max(F.when(F.col("part") == f"also{number}", is_above)).over(of_push)
        is_asked &= (F.col("alsos") <= number) | F.coalesce(F.when(holds, one).otherwise(every), F.lit(False))
    return (
        placed(rows, F.greatest(F.col("if_ms"), F.lit(1)), of_series)
        .withColumn("found", found)
        .withColumn("holds", F.when(is_above, F.col("found") > limit).otherwise(F.col("found") < limit))
        .withColumns(
            {
                "read": F.coalesce(of_topic, of_all, F.lit(0.0)),
                "is_asked": is_asked,
                "unless_ts": F.max(F.when(explains, F.col("ts"))).over(until_now),
            }
        )
        .where("part in ('value', 'per')")
    )


def by_series(rows: DataFrame, table: DataFrame) -> DataFrame:
    """One row for each series of a rule and time; its ``divisor`` is the value of the metric ``per``."""
    covers_interval = (F.col("temporality") == DELTA) | (F.col("kind") == GAUGE)
    moved = F.col("ts") - F.col("client_ts")  # if `ts` was corrected for a wrong clock, shift the start too
    start = F.when(covers_interval & (F.col("start_ts") <= F.col("client_ts")), F.col("start_ts") + moved)
    has_window = F.col("over_ms") > 0
    counted = F.when(F.col("is_begin") & ~F.col("is_early"), 0.0).otherwise(F.col("step"))
    value = F.when(has_window, counted).otherwise(F.col("value"))
    grouped = (
        rows.where(~has_window | F.col("temporality").isin(DELTA, CUMULATIVE))
        .withColumns(
            {
                "attrs": F.when(F.col("agg") == Aggregate.EACH.value, F.col("attrs")),
                # what was once is in all values of a window: the first one stands for no time before it
                "start_ts": F.when(has_window | F.col("keeps"), F.col("ts")).otherwise(start),
                "divisor": F.when(F.col("part") == "per", value),
                "value": F.when(F.col("part") == "value", value),
                "name": F.col("metric"),
            }
        )
        .groupBy(*SERIES, "ts")
        .agg(
            every_aggregate("value"),
            every_aggregate("divisor"),
            *(F.max(name).alias(name) for name in (*CLIENT, *LATEST)),
            *(F.min(name).alias(name) for name in ("start_ts", "first_ts", "is_asked")),
        )
    )
    same = [F.col("of.rule") == grouped["rule"], F.col("of.metric") == grouped["name"]]
    return grouped.join(F.broadcast(table.alias("of")), same).select(
        *(grouped[name] for name in grouped.columns if name not in ("value", "divisor")),
        *(chosen_aggregate(name) for name in ("value", "divisor")),
        *(f"of.{name}" for name in OF_SAMPLE),
    )


def every_aggregate(name: str) -> Column:
    """All aggregates of a column, as a struct with its name."""
    return F.struct(*(of(F.col(name)).alias(each.value) for each, of in AGGREGATES.items())).alias(name)


def chosen_aggregate(name: str) -> Column:
    """The rule's aggregate, of `every_aggregate`."""
    chosen = (F.when(F.col("of.agg") == each.value, F.col(f"{name}.{each}")) for each in AGGREGATES)
    return F.coalesce(*chosen).alias(name)


def lives_of(points: DataFrame) -> DataFrame:
    """By ``group_id``: ``lives``, the begin and the end of each client in milliseconds."""
    ends = F.struct("recv_ts", "terminating", "push_interval_ms")
    return (
        points.groupBy(INSTANCE)
        .agg(
            F.max("group_id").alias("group_id"),
            F.unix_millis(F.min("first_ts")).alias("begin"),
            F.max(ends).alias("last"),
        )
        .where("group_id is not null")
        .withColumn(
            "wait", F.when(F.col("last.terminating"), 0).otherwise(silence_ms("last.push_interval_ms"))
        )
        .groupBy("group_id")
        .agg(F.collect_list(F.expr("struct(begin, unix_millis(last.recv_ts) + wait as end)")).alias("lives"))
    )
