"""The verdict on each sample: whether its value is a trouble at that time in the life of its client."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.troubles import LEAST_LAG_S, STEP_S, STEPS, WARM_UP_S
from odradek_spark.jobs.rules import Op
from odradek_spark.jobs.windows import LENGTH, MS_PER_S, SERIES, age_ms, increase, placed, within

MINUTE_MS = 60_000
LEAST_VALUES = 3
"""Values of a window of a lag that is full."""


def judged(rows: DataFrame, lives: DataFrame | None) -> DataFrame:
    """The samples of `odradek_spark.jobs.samples.samples`.

    Args:
        rows: Values of series and times, with the parameters of their rules.
        lives: The clients of each group; None if no rule asks for them.
    """
    step_ms = F.greatest(F.lit(STEP_S * MS_PER_S), F.col("interval_ms"))
    window_ms = (
        F.when(F.col("moves").isNotNull(), F.greatest(F.lit(MINUTE_MS), 1.5 * F.col("interval_ms")))
        .when(F.col("steps") > 0, STEPS * step_ms)
        .otherwise(F.greatest(F.col("over_ms"), F.lit(1)))
    )
    longest = F.max("push_interval_ms").over(Window.partitionBy(*SERIES))
    numbered = placed(rows.withColumn("interval_ms", longest), window_ms, SERIES).withColumn(
        "run", run_of_lag()
    )
    ratio = F.try_divide(F.col("compared"), F.col("divided"))
    found = (
        numbered.withColumns(
            {
                "compared": over_window("value"),
                "divided": over_window("divisor"),
                "busy": steps_beyond(),
                "is_lag": is_lag(),
            }
        )
        .withColumn("value", F.when(F.col("is_ratio"), ratio).otherwise(F.col("compared")))
        .where("value is not null and not isnan(value)")  # infinite values can leave no number
    )
    if lives is not None:
        found = found.join(F.broadcast(lives), "group_id", "left").withColumn("changes", changes())
    else:
        found = found.withColumn("changes", F.lit(0))
    keep_ms = F.greatest(F.lit(MINUTE_MS), 2 * F.col("push_interval_ms"))
    asked = found.withColumn("holds", is_asked(keep_ms))
    until_now = Window.partitionBy(*SERIES).orderBy("ts")
    is_kept = F.col("keeps") & ~F.col("worse") & (age_ms("worse_ts") < keep_ms)
    return (
        asked.withColumns({name: F.col("holds") & beyond(limit) for name, limit in LIMITS.items()})
        .withColumn("worse_ts", F.max(F.when(F.col("worse"), F.col("ts"))).over(until_now))
        .where(~F.coalesce(is_kept, F.lit(False)))
        .drop(*MADE, "lives")
    )


LIMITS = {"worse": "threshold", "beyond": "clear"}
MADE = (
    *("is_ratio", "over_ms", "is_early", "steps", "moves", "explained", "interval_ms", "window_ms", "at_ms"),
    *("place", "before_ms", "run", "compared", "divided", "busy", "is_lag", "changes", "holds", "worse_ts"),
    *("divisor", "unless_ts", "read", "is_asked", "first_ts"),
)


def over_window(name: str) -> Column:
    """The increase of a column over the rule's window, for the rule's time; or the column itself."""
    scaled = increase(name, SERIES) * F.col("over_ms") / F.col("window_ms")
    return F.when(F.col("over_ms") > 0, scaled).otherwise(F.col(name))


def steps_beyond() -> Column:
    """In how many steps of the window the sum has increased by its share of the threshold."""
    limit = F.col("threshold") / STEPS * (F.col("window_ms") / STEPS / (STEP_S * MS_PER_S))
    found = F.lit(0)
    for step in range(STEPS):
        added = F.sum("value").over(within(SERIES, (step + 1) / STEPS, step / STEPS))
        found += F.coalesce(added > limit, F.lit(False)).cast("int")
    return found


def run_of_lag() -> Column:
    """The number of the run in which a lag never shrinks and is never 0."""
    in_order = Window.partitionBy(*SERIES).orderBy("at_ms")
    before = F.lag("value").over(in_order)
    goes_on = F.coalesce((before > 0) & (before <= F.col("value")), F.lit(False))
    return F.when(F.col("moves").isNotNull(), F.sum((~goes_on).cast("int")).over(in_order))


def is_lag() -> Column:
    """Whether a lag has not shrunk for a window, while the position moves and the lag grows, or stays."""
    of_run = Window.partitionBy(*SERIES, "run").orderBy("at_ms")
    since_ms, values = F.min("at_ms").over(of_run), F.count("value").over(of_run)
    frame = Window.partitionBy(*SERIES).orderBy("place")
    first = F.last("value").over(frame.rangeBetween(Window.unboundedPreceding, 1 - LENGTH))
    read = F.coalesce(F.sum("read").over(within(SERIES)), F.lit(0.0))
    least = read / F.col("window_ms") * MS_PER_S * LEAST_LAG_S
    grows = (read > 0) & (F.col("value") > first) & (F.col("value") > least)
    lasts = (values >= LEAST_VALUES) & (F.col("at_ms") - since_ms >= F.col("window_ms"))
    return (F.col("value") > 0) & lasts & F.when(F.col("moves"), grows).otherwise(read == 0)


def changes() -> Column:
    """The clients of a group that live now and did not before the window, or the other way round."""
    return F.expr(
        "coalesce(size(filter(lives, each -> (each.begin <= at_ms and at_ms <= each.end)"
        " <> (each.begin <= at_ms - window_ms and at_ms - window_ms <= each.end))), 0)"
    )


def is_asked(keep_ms: Column) -> Column:
    """Whether the trouble means something now in the life of the client, and nothing else explains it."""
    warm_ms = F.greatest(F.lit(WARM_UP_S * MS_PER_S), F.col("push_interval_ms"))
    lives = (age_ms("first_ts", "recv_ts") >= warm_ms) & ~F.col("terminating")
    is_explained = F.coalesce(age_ms("unless_ts") <= keep_ms, F.lit(False))
    asked = (F.col("is_early") | lives) & F.col("is_asked") & ~is_explained
    comes_again = (F.col("steps") == 0) | (F.col("busy") >= F.col("steps"))
    moves = F.col("moves").isNull() | F.col("is_lag")
    is_more = (F.col("explained") == 0) | (F.col("value") > F.col("explained") * F.col("changes"))
    return F.coalesce(asked & comes_again & moves & is_more, F.lit(False))


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
