"""Anomalies: values beyond a threshold for longer than a rule allows (proactive monitoring, KIP-714).

The method is "gaps and islands". A sample covers an interval: a delta of a sum covers the time since its
start, any other sample the time since the previous one; intervals never overlap. Consecutive samples beyond
the threshold form an island; a sample within the threshold, or a silence, ends it. An island that is long
enough is an episode: it is opened once, continued by later runs and closed once. Episodes that many clients
have for one reason name it as their cause.

Each client is judged in one pass over its points (`odradek_spark.jobs.client`); Spark brings them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from odradek.findings.incidents import OBSERVED
from odradek_spark.jobs.causes import LEAST, Episode, Key, with_causes
from odradek_spark.jobs.client import FOUND, KNOWN, LAST, OF_KNOWN, OF_LAST, Judge
from odradek_spark.jobs.life import INSTANCE
from odradek_spark.jobs.rules import Rule, silence_rules
from odradek_spark.jobs.samples import lives_of, of_points
from odradek_spark.jobs.silence import last_pushes, twins
from odradek_tables.schemas import ANOMALIES

EPOCH = datetime.fromtimestamp(0, UTC)


def detect(
    points: DataFrame,
    rules: Sequence[Rule],
    known: DataFrame,
    now: datetime,
    pushes: DataFrame | None = None,
) -> DataFrame:
    """Find new and changed episodes, at once.

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
    found = pa.Table.from_pylist(detected(points, rules, known, now, pushes), ANOMALIES.schema)
    return points.sparkSession.createDataFrame(found)


def detected(
    points: DataFrame, rules: Sequence[Rule], known: DataFrame, now: datetime, pushes: DataFrame | None
) -> list[Episode]:
    if pushes is not None:
        pushes = apart(pushes)
        seen = F.broadcast(twins(pushes).withColumnRenamed(INSTANCE, "twin"))
        is_theirs = ~F.col("name").startswith(OBSERVED)
        points = points.join(seen, (F.col(INSTANCE) == F.col("twin")) & is_theirs, "left_anti")
    rows = apart(of_points(points))
    now_ms = (now.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
    judge = Judge(tuple(rules), lives_of(rows, rules), now_ms)
    parts = [as_column(known, KNOWN, OF_KNOWN)]
    if silence_rules(rules) and pushes is not None:
        parts.append(as_column(last_pushes(pushes, now), LAST, OF_LAST))
    for part in parts:
        rows = rows.unionByName(part, allowMissingColumns=True)
    found = rows.groupBy(INSTANCE).applyInArrow(lambda group: judge.found(group), from_arrow_schema(FOUND))
    clients = apart(found)
    told = clients.where(F.size("episodes") > 0).toArrow().to_pylist()
    keys = {each[INSTANCE]: [Key(**key) for key in each["keys"]] for each in told}
    episodes = [
        {**episode, INSTANCE: each[INSTANCE], "date": f"{episode['started_ts']:%Y-%m-%d}"}
        for each in told
        for episode in each["episodes"]
    ]
    return with_causes(episodes, keys, clients_of(clients) if len(told) >= LEAST else {}, rules)


def clients_of(found: DataFrame) -> dict[Key, int]:
    """How many clients have a key, if it can be a cause."""
    counts = found.select(F.explode("keys").alias("key")).groupBy("key").count().where(f"count >= {LEAST}")
    return {Key(**each["key"]): each["count"] for each in counts.toArrow().to_pylist()}


def as_column(rows: DataFrame, name: str, names: Sequence[str]) -> DataFrame:
    """The instance of each row, and some columns of it as one column, with times as microseconds."""
    times = {each for each, kind in rows.dtypes if kind == "timestamp"}
    fields = (F.unix_micros(each).alias(each) if each in times else F.col(each) for each in names)
    return rows.select(INSTANCE, F.struct(*fields).alias(name))


def apart(rows: DataFrame) -> DataFrame:
    """The same rows without the plan that made them, so that it runs once for all that reads them."""
    return rows.localCheckpoint()
