"""Maintains the table of anomalies: opens, continues and closes each episode exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.troubles import STEPS
from odradek_spark.jobs.accepted import accepted
from odradek_spark.jobs.causes import Episode
from odradek_spark.jobs.detect import detected, metrics
from odradek_spark.jobs.islands import CLOSED, OPEN, SILENCE_INTERVALS
from odradek_spark.jobs.life import MUTED_INTERVALS, MUTED_MS
from odradek_spark.jobs.rules import Rule, silence_rules
from odradek_spark.load import load_dataset
from odradek_tables.dataset import JOB, Dataset
from odradek_tables.files import Manifest, arrow_files, write_files
from odradek_tables.following import last_received, news
from odradek_tables.log import CLOCK_SKEW_MAX, LiveFile, live
from odradek_tables.query.views import RETRY_INTERVALS
from odradek_tables.schemas import ANOMALIES, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_ID = "detect"
NO_PUSHES = "no-pushes"
"""The reason of an end: the host received no push of any client."""
UNHEARD = timedelta(minutes=3)
"""Time for which a push can be on its way into the tables."""
INTERPRETED: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
KEY: Final = ("rule", "client_instance_id", "name", "attrs", "started_ts")
"""The key of an episode."""
IS_OPEN: Final = pc.field("state") == OPEN
INTERVALS_BEFORE = 5
"""Push intervals to look back, besides a rule's time: two for late samples, and a silence."""


@dataclass(frozen=True, slots=True)
class Detected:
    opened: list[Episode]
    """New episodes, as rows of the table ``anomalies``, including those that have ended already."""
    closed: list[Episode]
    """Episodes that were open before, or are new and have ended already."""
    going_on: int
    """The number of episodes that are still open."""


def run_detect(
    spark: SparkSession, root: str, rules: Sequence[Rule], at: datetime | None = None
) -> Detected | None:
    """Process the points that arrived since the last run, by at least one rule.

    If no client has pushed for long at the time ``at``, open episodes are closed: their state is unknown.

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
    files = live(dataset.existing(ANOMALIES))
    old: list[Episode] = []
    changed: list[Episode] = []
    if found.since is not None:
        old, changed = recent_and_changed(spark, dataset, rules, files, found.since)
    manifests, replaced = written(dataset, changed, files)
    info = {JOB: APP_ID, "pushesVersion": found.version, "episodes": len(changed)}
    if not dataset.commit_next(ANOMALIES, manifests, APP_ID, found.after, found.version, info, replaced):
        return None
    return outcome(old, changed)


def recent_and_changed(
    spark: SparkSession, dataset: Dataset, rules: Sequence[Rule], files: Sequence[LiveFile], since: datetime
) -> tuple[list[Episode], list[Episode]]:
    pushes = load_dataset(spark, dataset.root, "pushes", since=since)
    latest = pushes.agg(F.max("recv_ts").alias("now"), F.max("push_interval_ms").alias("interval_ms"))
    ((now, interval_ms),) = (tuple(row.values()) for row in latest.toArrow().to_pylist())
    if now is None:  # the points expired before they were processed
        return [], []
    begin = since - look_back(rules, interval_ms)
    repeatable = begin - RETRY_INTERVALS * timedelta(milliseconds=interval_ms)
    recent_pushes = load_dataset(spark, dataset.root, "pushes", since=repeatable)
    points = accepted(
        load_dataset(spark, dataset.root, "points", since=begin - CLOCK_SKEW_MAX).where(
            (F.col("recv_ts") >= F.lit(begin)) & F.col("name").isin(*metrics(rules))
        ),
        recent_pushes,
    )
    recent = rows_of(dataset, files, IS_OPEN | (pc.field("last_recv_ts") >= begin))
    known = spark.createDataFrame(pa.Table.from_pylist(recent, ANOMALIES.schema))
    with interpreted(spark):
        found = detected(points, rules, known, now, recent_pushes)
    before = {key(each): each for each in recent}
    return recent, [each for each in found if before.get(key(each)) != each]


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Plans are neither compiled nor planned again after each stage: that costs more than it saves.

    CPU of a run over 299 pushes in a JVM that has detected before: 13 instead of 18 s.
    """
    before = {name: spark.conf.get(name) for name in INTERPRETED}
    try:
        for name, value in INTERPRETED.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def close_unheard(dataset: Dataset, at: datetime) -> Detected | None:
    """Close the open episodes if no client has pushed for long; nothing says whether they go on."""
    latest = last_received(dataset)
    files = live(dataset.existing(ANOMALIES))
    still = rows_of(dataset, files, IS_OPEN)
    if latest is None or not still:
        return None
    longest_ms = max(
        SILENCE_INTERVALS * each["push_interval_ms"] + (each["throttle_ms"] or 0) for each in still
    )
    if at - latest <= UNHEARD + timedelta(milliseconds=longest_ms):
        return None
    for each in still:
        each |= {"state": CLOSED, "reason": NO_PUSHES, "closed_ts": each["last_ts"]}
    if not rewritten(dataset, still, files, {JOB: APP_ID, "episodes": len(still)}):
        return None
    return Detected(opened=[], closed=still, going_on=0)


def look_back(rules: Sequence[Rule], interval_ms: int) -> timedelta:
    """The longest time before new points at which an island that is not an episode yet can have begun."""
    of_silence = silence_rules(rules)
    rule_s = max(each.for_s + each.over_s for each in rules)
    intervals = max([INTERVALS_BEFORE, *(each.threshold + 2 for each in of_silence)])
    if any(each.trouble is not None and each.trouble.steps for each in rules):
        intervals += STEPS
    muted_ms = max(MUTED_MS, MUTED_INTERVALS * interval_ms) if of_silence else 0
    return timedelta(seconds=rule_s, milliseconds=intervals * interval_ms + muted_ms)


def outcome(old: Sequence[Mapping[str, Any]], changed: Sequence[Episode]) -> Detected:
    known = {key(each): each["state"] for each in old}
    now = known | {key(each): each["state"] for each in changed}
    return Detected(
        opened=[each for each in changed if key(each) not in known],
        closed=[each for each in changed if each["state"] != OPEN],
        going_on=sum(state == OPEN for state in now.values()),
    )


def key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in KEY)


def rows_of(
    dataset: Dataset, files: Sequence[LiveFile], wanted: pc.Expression | None = None
) -> list[Episode]:
    """The rows of files of the table that match a condition; columns that older files lack are None."""
    uri = dataset.uri(ANOMALIES)
    found = arrow_files(dataset.root, ANOMALIES, [f"{uri}/{each.path}" for each in files])
    rows: list[Episode] = found.to_table(filter=wanted).to_pylist()
    return rows


def written(
    dataset: Dataset, changed: Sequence[Episode], files: Sequence[LiveFile]
) -> tuple[list[Manifest], list[LiveFile]]:
    """Write the days of new and changed rows again; changed ones replace rows with the same key.

    Returns:
        The new files, which are not committed yet, and those of the table's files that they replace.
    """
    days = {each["date"] for each in changed}
    replaced = [each for each in files if each.partition["date"] in days]
    rows = {key(each): each for each in (*rows_of(dataset, replaced), *changed)}
    table = pa.Table.from_pylist(list(rows.values()), schema=ANOMALIES.schema)
    return (write_files(dataset.root, ANOMALIES, table) if rows else []), replaced


def rewritten(
    dataset: Dataset, changed: Sequence[Episode], files: Sequence[LiveFile], info: Mapping[str, Any]
) -> bool:
    """Commit changed rows as `written` writes them; False if another run changed the files meanwhile."""
    manifests, replaced = written(dataset, changed, files)
    return dataset.exchange(ANOMALIES, replaced, manifests, info, data_change=True)
