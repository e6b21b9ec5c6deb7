"""Maintains the table of anomalies: opens, continues and closes each episode exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from odradek.plugin.troubles import SILENCE
from odradek_spark.jobs.accepted import accepted
from odradek_spark.jobs.detect import CLOSED, EPISODE, OPEN, SILENCE_INTERVALS, detect
from odradek_spark.jobs.rewriting import rewritten, rows_of
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.samples import THROTTLES
from odradek_spark.jobs.silence import silence_rules, silences
from odradek_spark.jobs.writing import write_frame
from odradek_spark.query.views import RETRY_INTERVALS
from odradek_spark.tables.dataset import JOB, Dataset
from odradek_spark.tables.following import last_received, news
from odradek_spark.tables.load import load_dataset, read_files
from odradek_spark.tables.log import CLOCK_SKEW_MAX, live
from odradek_spark.tables.schemas import ANOMALIES, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_ID = "detect"
NO_PUSHES = "no-pushes"
"""The reason of an end: the host received no push of any client."""
UNHEARD = timedelta(minutes=3)
"""Time for which a push can be on its way into the tables."""
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


def run_detect(
    spark: SparkSession, root: str, rules: Sequence[Rule], at: datetime | None = None
) -> Detected | None:
    """Process the points that arrived since the last run.

    Args:
        spark: The session.
        root: Path or URI of the dataset.
        rules: The rules; at least one.
        at: The time of the run. If no client has pushed for long by then, open episodes are closed: their
            state is unknown. None: they stay open.

    Returns:
        None if nothing changed because no points arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([ANOMALIES])
    found = news(dataset, PUSHES, ANOMALIES, APP_ID)
    if found is None:
        return None if at is None else close_unheard(dataset, at)
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
    recent_pushes = load_dataset(spark, root, "pushes", since=repeatable)
    points = accepted(
        load_dataset(spark, root, "points", since=begin - CLOCK_SKEW_MAX).where(
            (F.col("recv_ts") >= F.lit(begin)) & F.col("name").isin(*metrics(rules))
        ),
        recent_pushes,
    )
    recent = known.where((F.col("state") == OPEN) | (F.col("last_recv_ts") >= F.lit(begin)))
    of_silence = silence_rules(rules)
    of_values = [each for each in rules if each not in of_silence]
    changed = known.limit(0)
    if of_values:
        others = recent.where(F.col("name") != SILENCE)
        changed = changed.unionByName(detect(points, of_values, others, now))
    if of_silence:
        changed = changed.unionByName(silences(recent_pushes, points, of_silence, recent, now))
    return recent, changed.subtract(recent)


def close_unheard(dataset: Dataset, at: datetime) -> Detected | None:
    """Close the open episodes if no client has pushed for long; nothing says whether they go on."""
    latest = last_received(dataset)
    files = live(dataset.existing(ANOMALIES))
    rows = rows_of(dataset, files)
    still = [each for each in rows if each["state"] == OPEN]
    if latest is None or not still:
        return None
    longest_ms = max(
        SILENCE_INTERVALS * each["push_interval_ms"] + (each["throttle_ms"] or 0) for each in still
    )
    if at - latest <= UNHEARD + timedelta(milliseconds=longest_ms):
        return None
    for each in still:
        each |= {"state": CLOSED, "reason": NO_PUSHES, "closed_ts": each["last_ts"]}
    if not rewritten(dataset, rows, still, files, {JOB: APP_ID, "episodes": len(still)}):
        return None
    return Detected(opened=[], closed=still, going_on=0)


def look_back(rules: Sequence[Rule], interval_ms: int) -> timedelta:
    """The longest time before new points at which an island that is not an episode yet can have begun."""
    rule_s = max(each.for_s + each.over_s for each in rules)
    intervals = max([INTERVALS_BEFORE, *(each.threshold + 2 for each in silence_rules(rules))])
    return timedelta(seconds=rule_s, milliseconds=intervals * interval_ms)


def metrics(rules: Sequence[Rule]) -> list[str]:
    return sorted({*THROTTLES, *(name for each in rules for name in each.names)})


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
