"""Anomalies: values beyond a threshold for longer than a rule allows (proactive monitoring, KIP-714).

The method is "gaps and islands". A sample covers an interval: a delta of a sum covers the time since its
start, any other sample the time since the previous one; intervals never overlap. Consecutive samples beyond
the threshold form an island; a sample within the threshold, or a silence, ends it. An island that is long
enough is an episode: it is opened once, continued by later runs and closed once. Episodes that many clients
have for one reason name it as their cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import SILENCE
from odradek_spark.jobs.causes import with_causes
from odradek_spark.jobs.days import utc_day
from odradek_spark.jobs.rewriting import OPEN
from odradek_spark.jobs.rules import Op, Rule
from odradek_spark.jobs.samples import CLIENT, samples
from odradek_spark.jobs.silence import silence_rules, silences, twins
from odradek_spark.jobs.windows import INSTANCE, SERIES
from odradek_tables.schemas import ANOMALIES

SILENCE_INTERVALS = 2.5
"""After this many push intervals without a sample, the state is unknown."""
FORGOTTEN_MS = 3_600_000
"""A client that was silent for so long is gone for good."""
LEAST_HELD_MS = 10_000
CLOSED = "closed"
RECOVERED, SILENT = "recovered", "silent"
SAMPLE = (
    *SERIES,
    *CLIENT,
    *("start_ts", "ts", "recv_ts", "value", "worst", "samples", "push_interval_ms", "throttle_ms", "op"),
    *("threshold", "clear", "hold_ms", "beyond", "worse", "fired_ts", "cause"),
)
AT_LAST = (
    *(
        "value",
        "recv_ts",
        "next_beyond",
        "next_gap",
        "next_ts",
        "push_interval_ms",
        "throttle_ms",
        "op",
        "threshold",
    ),
    "clear",
    *CLIENT,
)


def detect(
    points: DataFrame,
    rules: Sequence[Rule],
    known: DataFrame,
    now: datetime,
    pushes: DataFrame | None = None,
) -> DataFrame:
    """Find new and changed episodes.

    Args:
        points: Rows of the table ``points`` that count, with the columns of their pushes
            (`odradek_spark.jobs.accepted.accepted`). They must reach back far enough to have every island
            that is not an episode yet completely.
        rules: The rules; at least one.
        known: Rows of the table ``anomalies``: all open ones, and the closed ones that ended within the time
            of ``points``. Samples that they cover are ignored, so that no episode is opened twice.
        now: The latest receive time in the tables.
        pushes: Rows of the table ``pushes``, for rules about silence, which are not asked without. With them,
            what a host has observed of a client that pushes itself tells nothing twice.

    Returns:
        Rows of the table ``anomalies``, of each episode that was opened, continued or closed. Times are by
        the client's clock, but for those of receipt. ``attrs`` is null if the rule aggregates series.
        ``reason`` is ``recovered`` (a sample was within the threshold) or ``silent`` (none came for 2.5 push
        intervals). Episodes with the same ``cause`` are one trouble.
    """
    points = apart(points)
    if pushes is not None:
        pushes = apart(pushes)
        seen = F.broadcast(twins(pushes).withColumnRenamed(INSTANCE, "twin"))
        is_theirs = ~F.col("name").startswith(OBSERVED)
        points = points.join(seen, (F.col(INSTANCE) == F.col("twin")) & is_theirs, "left_anti")
    of_silence = silence_rules(rules)
    of_values = [each for each in rules if each not in of_silence]
    rows = carried(known).select(*SAMPLE)
    if of_values:
        found = held(samples(points, of_values), now)
        rows = rows.unionByName(unseen(found, known).select(*SAMPLE))
    if of_silence and pushes is not None:
        found = silences(pushes, points, of_silence, now)
        rows = rows.unionByName(unseen(found, known).select(*SAMPLE))
    return with_causes(told(islands(apart(rows)), now), points, rules).select(*ANOMALIES.schema.names)


def apart(rows: DataFrame) -> DataFrame:
    """The same rows without the plan that made them, so that it is planned once for all that reads them."""
    return rows.localCheckpoint()


def held(found: DataFrame, now: datetime) -> DataFrame:
    """With the samples that throttled clients would have sent: their quota holds back their pushes, too."""
    ts_ms, is_last = (
        F.unix_millis("ts"),
        F.lead("ts").over(Window.partitionBy(*SERIES).orderBy("ts")).isNull(),
    )
    until_ms = F.least(F.unix_millis(F.lit(now)), ts_ms + F.col("throttle_ms"))
    interval_ms = F.greatest(F.col("push_interval_ms"), F.lit(LEAST_HELD_MS)).cast("bigint")
    later = F.transform(F.sequence(ts_ms + interval_ms, until_ms, interval_ms), F.timestamp_millis)
    is_held = F.expr("is_last and keeps and worse and throttle_ms > 0 and not terminating")
    with_later = F.when(is_held & (until_ms >= ts_ms + interval_ms), F.concat(F.array("ts"), later))
    return found.withColumn("is_last", is_last).withColumn(
        "ts", F.explode(F.coalesce(with_later, F.array("ts")))
    )


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
        .withColumn("cause", F.lit(None).cast("string"))
    )


def carried(known: DataFrame) -> DataFrame:
    """Open episodes, each as a sample that begins its island."""
    return known.where(F.col("state") == OPEN).select(
        *SERIES,
        *CLIENT,
        F.col("started_ts").alias("start_ts"),
        F.col("last_ts").alias("ts"),
        F.col("last_recv_ts").alias("recv_ts"),
        F.col("last").alias("value"),
        "worst",
        "samples",
        "push_interval_ms",
        F.coalesce("throttle_ms", F.lit(0)).cast("bigint").alias("throttle_ms"),
        "op",
        "threshold",
        F.coalesce("clear", "threshold").alias("clear"),
        F.lit(0.0).alias("hold_ms"),
        F.lit(True).alias("beyond"),
        F.lit(True).alias("worse"),
        "fired_ts",
        "cause",
    )


def islands(rows: DataFrame) -> DataFrame:
    """Group samples into the islands that are long enough.

    Samples beyond the threshold (``worse``) must last for the rule's time. From then on the island goes on
    while samples are beyond the clearing threshold (``beyond``).

    Returns:
        The columns of these samples; ``island`` bigint; ``from_ts`` timestamp: the beginning of the island;
        ``long`` boolean: at this sample the island had exceeded the rule's time; ``next_beyond``,
        ``next_gap`` and ``next_ts`` of the next sample, null if there is none.
    """
    in_order = Window.partitionBy(*SERIES).orderBy("ts")
    before = F.lag("ts").over(in_order)
    silence_ms = F.unix_millis(F.coalesce("start_ts", "ts")) - F.unix_millis(before)
    # A client that was told to wait pushes later: by the time that its last push or this one reports.
    waits_ms = F.greatest("throttle_ms", F.lag("throttle_ms").over(in_order))
    gap = F.coalesce(silence_ms > allowed_ms(waits_ms), F.lit(False))
    breaks = F.col("gap") | ~F.coalesce(F.lag("beyond").over(in_order), F.lit(False))
    since = F.when(F.col("start_ts").isNotNull(), F.greatest("start_ts", before))
    numbered = (
        rows.withColumn("gap", gap)
        .withColumn("begin", F.coalesce(since, F.when(~F.col("gap"), before), "ts"))
        .withColumn("next_beyond", F.lead("beyond").over(in_order))
        .withColumn("next_gap", F.lead("gap").over(in_order))
        .withColumn("next_ts", F.lead("ts").over(in_order))
        .withColumn("island", F.sum(breaks.cast("int")).over(in_order))
        .where("beyond")
    )
    whole = Window.partitionBy(*SERIES, "island")
    of_part = Window.partitionBy(*SERIES, "island", "part")
    lasted_ms = F.unix_millis("ts") - F.unix_millis("part_ts")
    long = F.col("worse") & ((lasted_ms > F.col("hold_ms")) | (F.col("hold_ms") == 0))
    return (
        numbered.withColumn("part", F.sum((~F.col("worse")).cast("int")).over(whole.orderBy("ts")))
        .withColumn("part_ts", F.min(F.when(F.col("worse"), F.col("begin"))).over(of_part))
        .withColumn("long", long)
        .withColumn("first", F.min(F.when(F.col("long"), F.col("part"))).over(whole))
        .withColumn("from_ts", F.min(F.when(F.expr("part = first"), F.col("part_ts"))).over(whole))
        .where("part > first or (part = first and worse)")
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
            F.max("cause").alias("cause"),
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
        F.col("next_beyond").isNull() & (unheard_ms > allowed_ms(F.col("throttle_ms")))
    )
    reason = F.when(silent, F.lit(SILENT)).when(~F.col("next_beyond"), F.lit(RECOVERED))
    is_back = (F.col("name") == SILENCE) & F.col("next_ts").isNotNull()
    closed_ts = F.when(is_back, F.col("next_ts")).otherwise(F.col("last_ts"))
    return (
        found.withColumn("reason", reason)
        .withColumn("state", F.when(F.col("reason").isNull(), F.lit(OPEN)).otherwise(F.lit(CLOSED)))
        .withColumn("closed_ts", F.when(F.col("reason").isNotNull(), closed_ts))
        .withColumn("worst", F.when(upward, F.col("highest")).otherwise(F.col("lowest")))
        .withColumnRenamed("value", "last")
        .withColumnRenamed("recv_ts", "last_recv_ts")
        .withColumn("date", utc_day("started_ts"))
    )


def allowed_ms(throttle_ms: Column) -> Column:
    """The longest silence after which the state is still known, in milliseconds."""
    known_ms = SILENCE_INTERVALS * F.col("push_interval_ms") + throttle_ms
    return F.when(F.col("name") == SILENCE, FORGOTTEN_MS).otherwise(known_ms)
