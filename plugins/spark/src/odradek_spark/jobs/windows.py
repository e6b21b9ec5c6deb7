"""Windows of time whose lengths are columns: a rule's, or as many push intervals as a client has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812

from odradek.temporality.clients import LEAST_SILENCE_MS, SLACK_MS

INSTANCE: Final = "client_instance_id"
SERIES: Final = ["rule", INSTANCE, "name", "attrs"]
MS_PER_S: Final = 1000
COUNTED_FROM_MS: Final = 10_000
"""What a counter has counted before is no increase: it is in the first pushes of a client."""
LENGTH: Final = 1_000_000
"""The length of each window, in the unit of ``place``."""
EDGE: Final = 2
"""Rounding of ``place``."""


def age_ms(since: str, until: str = "ts") -> Column:
    """The milliseconds between two times."""
    return F.unix_millis(until) - F.unix_millis(since)


def silence_ms(interval_ms: str) -> Column:
    """How long a healthy client may be silent: `odradek.temporality.clients.silence_ms`."""
    waits = F.floor(2.5 * F.col(interval_ms)) + SLACK_MS
    return F.greatest(F.lit(LEAST_SILENCE_MS), waits).cast("bigint")


def placed(rows: DataFrame, window_ms: Column, series: Sequence[str]) -> DataFrame:
    """Rows with what `within` and `increase` need.

    ``place`` is the time in units of the window's length, so that one frame of Spark fits windows of all
    lengths. Rows of a series have the same length.
    """
    place = (F.col("at_ms") * LENGTH / F.col("window_ms")).cast("bigint")
    in_order = Window.partitionBy(*series).orderBy("at_ms")
    timed = rows.withColumns(
        {"window_ms": window_ms.cast("double"), "at_ms": F.unix_millis("ts").cast("double")}
    )
    return timed.withColumns({"place": place, "before_ms": F.lag("at_ms").over(in_order)})


def within(series: Sequence[str], begin: float = 1.0, end: float = 0.0) -> WindowSpec:
    """The rows from after the begin to the end, in lengths of the window before a row."""
    ordered = Window.partitionBy(*series).orderBy("place")
    return ordered.rangeBetween(round(-begin * LENGTH) + EDGE, round(-end * LENGTH))


def increase(name: str, series: Sequence[str]) -> Column:
    """The sum of steps in the window. Of a step that began before it, the same part counts as of its time."""
    frame = within(series)
    oldest_ms, before_ms = F.first("at_ms").over(frame), F.first("before_ms").over(frame)
    outside_ms = F.greatest(F.lit(0.0), F.col("at_ms") - F.col("window_ms") - before_ms)
    share = F.coalesce(F.try_divide(outside_ms, oldest_ms - before_ms), F.lit(0.0))
    outside = F.coalesce(F.first(name).over(frame) * share, F.lit(0.0))
    return F.greatest(F.lit(0.0), F.sum(name).over(frame) - outside)
