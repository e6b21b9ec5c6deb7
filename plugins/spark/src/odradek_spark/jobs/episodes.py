"""Maintains the table of anomalies: opens, continues and closes each episode exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.jobs.accepted import accepted
from odradek_spark.jobs.detect import EPISODE, OPEN, detect
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.writing import write_frame
from odradek_spark.query.views import RETRY_INTERVALS
from odradek_spark.tables.dataset import JOB, Dataset
from odradek_spark.tables.following import news
from odradek_spark.tables.load import load_dataset, read_files
from odradek_spark.tables.log import CLOCK_SKEW_MAX, live
from odradek_spark.tables.schemas import ANOMALIES, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_ID = "detect"
INTERVALS_BEFORE = 5
"""Push intervals to look back, besides a rule's time: two for late samples, and a silence."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The result of a run."""

    opened: list[dict[str, Any]]
    """New episodes, as rows of the table ``anomalies``, including those that have ended already."""
    closed: list[dict[str, Any]]
    """Episodes that were open before, or are new and have ended already."""
    going_on: int
    """The number of episodes that are still open."""


def upsert(known: DataFrame, changed: DataFrame) -> DataFrame:
    """Update the table ``anomalies``.

    Args:
        known: The existing rows.
        changed: New rows, and rows that replace those with the same rule, instance, metric, labels and
            beginning.

    Returns:
        The table ``anomalies``.
    """
    same = [known[key].eqNullSafe(changed[key]) for key in EPISODE]
    return known.join(changed, same, "left_anti").unionByName(changed)


def run_detect(spark: SparkSession, root: str, rules: Sequence[Rule]) -> Detected | None:
    """Process the points that arrived since the last run.

    Returns:
        None if no points arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([ANOMALIES])
    found = news(dataset, PUSHES, ANOMALIES, APP_ID)
    if found is None:
        return None
    before = live(dataset.existing(ANOMALIES))
    known = read_files(spark, root, ANOMALIES, [f"{dataset.uri(ANOMALIES)}/{each.path}" for each in before])
    if found.since is None:
        changed, old = known.limit(0), known.limit(0)
    else:
        old, changed = recent_and_changed(spark, root, rules, known, found.since)
    changed = changed.cache()
    try:
        rows = changed.toArrow().to_pylist()
        days = {each["date"] for each in rows}
        replaced = [each for each in before if each.partition["date"] in days]
        manifests = []
        if rows:
            touched = known.where(F.col("date").isin(*days))
            manifests = write_frame(upsert(touched, changed).coalesce(1), root, ANOMALIES)
        known_rows = old.toArrow().to_pylist()
    finally:
        changed.unpersist()
    info = {JOB: APP_ID, "pushesVersion": found.version, "episodes": len(rows)}
    if not dataset.commit_next(ANOMALIES, manifests, APP_ID, found.after, found.version, info, replaced):
        return None
    return outcome(known_rows, rows)


def recent_and_changed(
    spark: SparkSession, root: str, rules: Sequence[Rule], known: DataFrame, since: datetime
) -> tuple[DataFrame, DataFrame]:
    """The known episodes that may still change, and the new and changed ones."""
    pushes = load_dataset(spark, root, "pushes", since=since)
    latest = pushes.agg(F.max("recv_ts").alias("now"), F.max("push_interval_ms").alias("interval_ms"))
    ((now, interval_ms),) = (tuple(row.values()) for row in latest.toArrow().to_pylist())
    if now is None:  # the points expired before they were processed
        return known.limit(0), known.limit(0)
    begin = since - look_back(rules, interval_ms)
    repeatable = begin - RETRY_INTERVALS * timedelta(milliseconds=interval_ms)
    points = accepted(
        load_dataset(spark, root, "points", since=begin - CLOCK_SKEW_MAX).where(
            (F.col("recv_ts") >= F.lit(begin)) & F.col("name").isin(*metrics(rules))
        ),
        load_dataset(spark, root, "pushes", since=repeatable),
    )
    recent = known.where((F.col("state") == OPEN) | (F.col("last_recv_ts") >= F.lit(begin)))
    return recent, detect(points, rules, recent, now).subtract(recent)


def look_back(rules: Sequence[Rule], interval_ms: int) -> timedelta:
    """The longest time before new points at which an island that is not an episode yet can have begun."""
    return timedelta(seconds=max(each.for_s for each in rules), milliseconds=INTERVALS_BEFORE * interval_ms)


def metrics(rules: Sequence[Rule]) -> list[str]:
    return sorted({each.metric for each in rules})


def outcome(old: Sequence[Mapping[str, Any]], changed: Sequence[dict[str, Any]]) -> Detected:
    """The opened and closed episodes, for people."""
    known = {key(each): each["state"] for each in old}
    now = known | {key(each): each["state"] for each in changed}
    return Detected(
        opened=[each for each in changed if key(each) not in known],
        closed=[each for each in changed if each["state"] != OPEN],
        going_on=sum(state == OPEN for state in now.values()),
    )


def key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in EPISODE)
