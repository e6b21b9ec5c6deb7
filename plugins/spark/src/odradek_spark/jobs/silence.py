"""Clients that are subscribed but stopped pushing, without a goodbye.

A silence is measured in push intervals in which the host received a push of any client: while the host is
down, or the network in front of it, no client is silent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.troubles import SILENCE
from odradek_spark.frames import pushes as pushes_of
from odradek_spark.jobs.detect import CLOSED, RECOVERED, SILENT
from odradek_spark.jobs.rewriting import OPEN, Row, key
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.samples import CLIENT, INSTANCE, MS_PER_S, waited_ms
from odradek_tables.query.views import OF_CLIENTS

EPOCH = datetime.fromtimestamp(0, UTC)
OF_PUSH = [name for name in CLIENT if name not in ("client_rack", "group_id")]
"""The columns of `CLIENT` that a push has; the others are labels of its points."""
SILENT_INTERVALS = 3.0
"""A client pushes once in 0.5 to 1.5 intervals, and two pushes may be lost (KIP-714)."""
FORGOTTEN = timedelta(hours=1)
"""After this time a silent instance is gone for good, and its episode is closed."""


def silence_rules(rules: Sequence[Rule]) -> list[Rule]:
    """The rules about silence; their threshold is a number of push intervals."""
    return [each for each in rules if each.metric == SILENCE]


def silences(
    pushes: DataFrame, points: DataFrame, rules: Sequence[Rule], known: Sequence[Row], now: datetime
) -> list[Row]:
    """Find new and changed episodes of silence.

    Args:
        pushes: Rows of the table ``pushes``, as far back as a silence can have begun.
        points: Points of the same time, for the labels of clients and the times for which they wait.
        rules: Rules of `silence_rules`; at least one.
        known: Rows of the table ``anomalies``.
        now: The latest receive time in the tables.

    Returns:
        Rows of the table ``anomalies``. ``started_ts``, ``last_ts`` and ``last_recv_ts`` are the time of the
        last push.
    """
    known = [each for each in known if each["name"] == SILENCE]
    still = [each for each in known if each["state"] == OPEN]
    lasts = quiet(pushes, points, rules, still, now).toArrow().to_pylist()
    late = [each for each in lasts if each["is_quiet"]]
    slots = slots_heard(pushes, late)
    begun = [opened(each, rule, heard_since(each, slots), now) for each in late for rule in rules]
    by_instance = {each[INSTANCE]: each for each in lasts}
    ended = [closed(each, by_instance.get(each[INSTANCE]), now) for each in still]
    before = {key(each) for each in known}
    new = [each for each in begun if each is not None and key(each) not in before]
    return [*new, *(each for each in ended if each is not None)]


def silent(df: DataFrame, intervals: float = SILENT_INTERVALS) -> DataFrame:
    """The instances that stopped pushing, without a goodbye and without a newer instance of their client id.

    Args:
        df: A batch: rows of the table ``pushes``, or records of the topic.
        intervals: For how many of its push intervals an instance must be silent, until the latest push of
            any client.

    Returns:
        ``client_instance_id``; ``client_id``, ``software_name``, ``software_version``, ``principal``,
        ``client_address`` string; ``recv_ts`` timestamp: of the last push; ``push_interval_ms`` int.
    """
    lasts = last_pushes(df if "push_interval_ms" in df.columns else pushes_of(df))
    newest = lasts.agg(F.max("recv_ts").alias("now"))
    age_ms = F.unix_millis("now") - F.unix_millis("recv_ts")
    is_silent = F.col("is_expected") & (age_ms > intervals * F.col("push_interval_ms"))
    found = lasts.crossJoin(F.broadcast(newest)).where(is_silent)
    return found.select(INSTANCE, *OF_PUSH, "recv_ts", "push_interval_ms")


def last_pushes(pushes: DataFrame) -> DataFrame:
    """The last push of each instance that has a push interval.

    Returns:
        ``client_instance_id``, ``recv_ts``, ``push_interval_ms``, the columns `OF_PUSH`, and ``is_expected``
        boolean: it was no goodbye, and no newer instance of the client id has begun.
    """
    told = F.struct("recv_ts", "push_interval_ms", "terminating", *OF_PUSH)
    lasts = (
        pushes.where(OF_CLIENTS)
        .groupBy(INSTANCE)
        .agg(F.min("recv_ts").alias("first_ts"), F.max_by(told, "recv_ts").alias("last"))
    )
    newest_ts = F.max("first_ts").over(Window.partitionBy("client_id", "principal"))
    return (
        lasts.select(INSTANCE, "first_ts", "last.*")
        .where("push_interval_ms > 0")
        .withColumn("is_expected", ~F.col("terminating") & (newest_ts <= F.col("recv_ts")))
        .drop("first_ts", "terminating")
    )


def quiet(
    pushes: DataFrame, points: DataFrame, rules: Sequence[Rule], still: Sequence[Row], now: datetime
) -> DataFrame:
    """The last push of each instance that may be silent, or that has an open episode.

    An instance whose client id has a newer instance was restarted: it is not silent.

    Returns:
        ``client_instance_id``; the columns of `CLIENT`; ``recv_ts``; ``push_interval_ms``; ``wait_ms``
        double: how long it may wait because it was throttled; ``is_quiet`` boolean: no push came for longer
        than the shortest rule allows.
    """
    waits = waited_ms(F.when(~F.isnan("value"), F.col("value")))
    labels = points.groupBy(INSTANCE).agg(
        F.max("client_rack").alias("client_rack"),
        F.max("group_id").alias("group_id"),
        F.max_by(waits, F.when(waits.isNotNull(), F.col("recv_ts"))).alias("wait_ms"),
    )
    ids = sorted({each[INSTANCE] for each in still})
    begun = pushes.sparkSession.createDataFrame(pa.table({INSTANCE: pa.array(ids, pa.string())}))
    age_ms = F.unix_millis(F.lit(now)) - F.unix_millis("recv_ts")
    intervals, seconds = (min(getattr(each, name) for each in rules) for name in ("threshold", "for_s"))
    is_late = age_ms > intervals * F.col("push_interval_ms") + seconds * MS_PER_S + F.col("wait_ms")
    return (
        last_pushes(pushes)
        .join(F.broadcast(begun.withColumn("is_open", F.lit(True))), INSTANCE, "left")
        .join(labels, INSTANCE, "left")
        .withColumn("wait_ms", F.coalesce("wait_ms", F.lit(0.0)))
        .withColumn("is_quiet", is_late & F.col("is_expected"))
        .where("is_quiet or is_open")
        .select(INSTANCE, *CLIENT, "recv_ts", "push_interval_ms", "wait_ms", "is_quiet")
    )


def slots_heard(pushes: DataFrame, lasts: Sequence[Row]) -> dict[int, list[int]]:
    """By push interval of the rows: the numbers of the intervals in which any client pushed, in order."""
    if not lasts:
        return {}
    lengths = F.array(*(F.lit(each) for each in sorted({row["push_interval_ms"] for row in lasts})))
    later = pushes.where(F.col("recv_ts") >= F.lit(min(row["recv_ts"] for row in lasts)))
    numbers = later.select("recv_ts", F.explode(lengths).alias("length")).select(
        "length", F.floor(F.unix_millis("recv_ts") / F.col("length")).alias("number")
    )
    found: dict[int, list[int]] = {}
    for row in sorted(tuple(row.values()) for row in numbers.distinct().toArrow().to_pylist()):
        found.setdefault(row[0], []).append(row[1])
    return found


def heard_since(last: Row, slots: Mapping[int, Sequence[int]]) -> int:
    """The push intervals after a push in which any client pushed."""
    numbers = slots[last["push_interval_ms"]]
    own = (last["recv_ts"] - EPOCH) // timedelta(milliseconds=last["push_interval_ms"])
    return len(numbers) - bisect_right(numbers, own)


def opened(last: Row, rule: Rule, heard: int, now: datetime) -> Row | None:
    """The new episode of an instance that is silent by a rule; None if it is not."""
    interval_ms, wait_ms, pushed = last["push_interval_ms"], last["wait_ms"], last["recv_ts"]
    allowed_ms = rule.threshold * interval_ms + rule.for_s * MS_PER_S + wait_ms
    age_ms = (now - pushed) / timedelta(milliseconds=1)
    if age_ms <= allowed_ms or heard <= rule.threshold + wait_ms / interval_ms:
        return None
    return {
        "rule": rule.id,
        INSTANCE: last[INSTANCE],
        "name": SILENCE,
        "attrs": None,
        **{name: last[name] for name in CLIENT},
        "op": rule.op.value,
        "threshold": rule.threshold,
        "clear": rule.threshold,
        "started_ts": pushed,
        "fired_ts": now,
        "last_ts": pushed,
        "last_recv_ts": pushed,
        "closed_ts": None,
        "state": OPEN,
        "reason": None,
        "samples": 0,
        "worst": float(heard),
        "last": float(heard),
        "push_interval_ms": interval_ms,
        "throttle_ms": int(wait_ms),
        "date": f"{pushed:%Y-%m-%d}",
    }


def closed(row: Row, last: Row | None, now: datetime) -> Row | None:
    """An open episode that ended: the instance pushed again, or is gone for good. None if it goes on."""
    if last is not None and last["recv_ts"] > row["started_ts"]:
        return row | {"state": CLOSED, "reason": RECOVERED, "closed_ts": last["recv_ts"]}
    if row["fired_ts"] <= now - FORGOTTEN:
        return row | {"state": CLOSED, "reason": SILENT, "closed_ts": now}
    return None
