"""The causes of episodes: what those clients have in common that have the same trouble at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek.findings.hints import EXPLAINS
from odradek.findings.troubles import Kind
from odradek_spark.jobs.rewriting import EPISODE
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.windows import INSTANCE, LENGTH

LEAST: Final = 3
"""Clients in the same trouble that have a cause in common, if they are more than half."""
LEAST_MS: Final = 60_000
BROKER: Final = "broker"
NODE: Final = (
    "coalesce(get_json_object(attrs, \"$['node_id']\"), 'node-' || get_json_object(attrs, \"$['node.id']\"))"
)
"""The broker that an episode is about."""


def with_causes(found: DataFrame, points: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Episodes with their ``cause``: ``behind: group billing``, or null.

    A trouble that means something only if most clients of a broker have it is left out for the others. What
    a cause explains of its clients has the same cause.

    Args:
        found: Rows of `odradek_spark.jobs.detect.told`.
        points: The points in which they were found.
        rules: The rules.
    """
    shared = [each.id for each in rules if each.trouble is not None and each.trouble.kind is Kind.SHARED]
    is_shared, is_of_broker = F.col("rule").isin(shared), F.col("of.key") == BROKER
    fits = F.when(is_of_broker, F.col("of.value").eqNullSafe(F.col("node"))).otherwise(~is_shared)
    span_ms = F.max(F.greatest(F.lit(LEAST_MS), 2 * F.col("push_interval_ms")))
    same = Window.partitionBy("rule", "of.key", "of.value", "fits")
    near = same.orderBy("place").rangeBetween(-LENGTH, LENGTH)
    is_cause = F.col("fits") & (F.size("together") >= LEAST) & (2 * F.size("together") > F.col("of.clients"))
    text = F.concat_ws(" ", F.concat("rule", F.lit(":")), "of.key", "of.value")
    names = [each for each in found.columns if each not in EPISODE]
    return (
        found.join(in_common(points), INSTANCE, "left")
        .withColumn("node", F.expr(NODE))
        .withColumn("of", F.explode_outer("keys"))
        .withColumn("fits", F.coalesce(fits, F.lit(False)))
        .withColumn("span_ms", span_ms.over(same))
        .withColumn("place", (F.unix_millis("started_ts") * LENGTH / F.col("span_ms")).cast("bigint"))
        .withColumn("together", F.collect_set(INSTANCE).over(near))
        .groupBy(*EPISODE)
        .agg(
            *(F.first(name).alias(name) for name in (*names, "node")),
            F.min_by(F.when(is_cause, text), F.when(is_cause, F.col("of.place"))).alias("own_cause"),
        )
        .withColumn("own_cause", F.coalesce("own_cause", "cause"))
        .withColumn("cause", F.coalesce(explained(), F.col("own_cause")))
        .where(~is_shared | F.col("cause").isNotNull())
        .drop("node", "own_cause")
    )


def explained() -> Column:
    """The cause of a trouble that another one of the same client explains."""
    of_client = Window.partitionBy(INSTANCE)
    found = F.lit(None).cast("string")
    for cause, consequences in EXPLAINS.items():
        told = F.when(F.col("rule") == cause, F.struct("node", "own_cause"))
        of = F.max(F.when(F.col("own_cause").isNotNull(), told)).over(of_client)
        is_its = F.col("node").isNull() | (F.col("node") == of["node"])
        found = F.when(F.col("rule").isin(*consequences) & is_its, of["own_cause"]).otherwise(found)
    return found


def in_common(points: DataFrame) -> DataFrame:
    """By client that is not gone: ``keys``, what it has in common with others, and how many have it."""
    of_clients = {
        "group": F.max("group_id"),
        "gateway": F.max(F.get_json_object("resource", "$['gateway']")),
        "principal": F.max("principal"),
        "address": F.max("client_address"),
        "library": F.max(F.concat_ws(" ", "software_name", "software_version")),
    }
    single = [
        F.struct(F.lit(place).alias("place"), F.lit(key).alias("key"), F.col(key).alias("value"))
        for place, key in enumerate(of_clients, 1)
    ]
    brokers = F.transform(
        "nodes",
        lambda node: F.struct(F.lit(0).alias("place"), F.lit(BROKER).alias("key"), node.alias("value")),
    )
    clients = F.count("*").over(Window.partitionBy("of.key", "of.value")).alias("clients")
    return (
        points.groupBy(INSTANCE)
        .agg(
            *(value.alias(key) for key, value in of_clients.items()),
            F.collect_set("node_id").alias("nodes"),
            F.max("terminating").alias("is_gone"),
        )
        .where("not is_gone")
        .select(INSTANCE, F.explode(F.concat(brokers, F.array(*single))).alias("of"))
        .where("of.value <> ''")
        .select(INSTANCE, "of.*", clients)
        .groupBy(INSTANCE)
        .agg(F.collect_list(F.struct("place", "key", "value", "clients")).alias("keys"))
    )
