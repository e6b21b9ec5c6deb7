"""Anomalies: values beyond a threshold for longer than a rule allows (proactive monitoring, KIP-714).

The method is "gaps and islands". A sample covers an interval: a delta of a sum covers the time since its
start, any other sample the time since the previous one; intervals never overlap. Consecutive samples beyond
the threshold form an island; a sample within the threshold, or a silence, ends it. An island that is long
enough is an episode: it is opened once, continued by later runs and closed once. Episodes that many clients
have for one reason name it as their cause.

Each client is judged in one pass over its points (`odradek_spark.jobs.client`); Spark brings them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from odradek.findings.incidents import LOST, OBSERVED
from odradek.findings.troubles import THROTTLED
from odradek.temporality.clients import silence_ms
from odradek_spark.jobs.causes import LEAST, Episode, Key, with_causes
from odradek_spark.jobs.client import FOUND, KNOWN, LAST, OF_KNOWN, OF_LAST, POINT, SAMPLE, Judge, Lives
from odradek_spark.jobs.life import INSTANCE, OF_POINT, TIMES, ms
from odradek_spark.jobs.rules import Rule, silence_rules
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


def samples(points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The samples that the rules compare.

    Args:
        points: Rows of `odradek_spark.jobs.accepted.accepted`.
        rules: The rules. With that of rebalances that come again and again, the points are read at once, for
            the members of each group.

    Returns:
        ``rule``, ``client_instance_id``, ``name``, ``attrs``; the columns of
        `odradek_spark.jobs.life.CLIENT`; ``value`` double; ``ts``; ``start_ts``: start of the covered
        interval, null for the previous sample; ``recv_ts``; ``push_interval_ms``; ``throttle_ms`` bigint: how
        long no push may come, since the client is throttled; ``op``, ``threshold``, ``clear``, ``keeps``: of
        the rule; ``hold_ms`` double: its time; ``terminating``; ``worse`` boolean: beyond the threshold, and
        all conditions of the rule hold; ``beyond`` boolean: the same with the clearing threshold.
    """
    judge = Judge(tuple(rules), lives_of(of_points(points), rules))
    read = of_points(points.where(F.col("name").isin(metrics(rules)))).groupBy(INSTANCE)
    return read.applyInArrow(lambda group: judge.sampled(group), from_arrow_schema(SAMPLE))


def of_points(points: DataFrame) -> DataFrame:
    """The instance of each point, and what tasks read of it as the column `POINT`."""
    made = {
        "value": F.coalesce("value", F.col("value_int").cast("double")),
        "gateway": F.get_json_object("resource", "$['gateway']"),
        **{name: F.unix_micros(name) for name in TIMES},
    }
    names = (*OF_POINT, "gateway")
    fields = (made.get(name, F.col(name)).alias(name) for name in names)
    return points.select(INSTANCE, F.struct(*fields).alias(POINT))


def metrics(rules: Sequence[Rule]) -> list[str]:
    of_all = (LOST, *(each.metric for each in THROTTLED))
    return sorted({*of_all, *(name for each in rules for name in each.names)})


def lives_of(points: DataFrame, rules: Sequence[Rule]) -> Lives:
    """The begin and the end of each client of a group, if a rule asks for them; ``points`` of `of_points`."""
    if not any(each.explained for each in rules):
        return {}
    ends = F.struct(*(f"{POINT}.{name}" for name in ("recv_ts", "terminating", "push_interval_ms")))
    clients = points.groupBy(INSTANCE).agg(
        F.max(f"{POINT}.group_id").alias("group"),
        F.min(f"{POINT}.first_ts").alias("first_ts"),
        F.max(ends).alias("last"),
    )
    found = defaultdict(list)
    rows = clients.where("group is not null").select("group", "first_ts", "last.*").toArrow().to_pydict()
    for group, first_ts, recv_ts, terminating, interval_ms in zip(*rows.values(), strict=True):
        found[group].append((ms(first_ts), ms(recv_ts) + (0 if terminating else silence_ms(interval_ms))))
    return dict(found)
