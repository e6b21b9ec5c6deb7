"""The samples that rules compare: values of a metric, its increase over a window, or a ratio of two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from odradek.findings.incidents import LOST
from odradek.findings.troubles import THROTTLED
from odradek.temporality.clients import silence_ms
from odradek_spark.jobs.client import POINT, SAMPLE, Judge, Lives
from odradek_spark.jobs.life import INSTANCE, OF_POINT, TIMES, ms
from odradek_spark.jobs.rules import Rule


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
