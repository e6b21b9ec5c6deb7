"""The jobs, each with a one-line report of its outcome; None if there was nothing to do. It imports Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from odradek_spark.jobs.compact import run_compact
from odradek_spark.jobs.episodes import run_detect
from odradek_spark.jobs.expire import run_expire, run_vacuum
from odradek_spark.jobs.inventory import run_inventory
from odradek_spark.jobs.rollup import run_rollup
from odradek_spark.jobs.rules import Rule
from odradek_tables.dataset import Dataset
from odradek_tables.levels import Levels
from odradek_tables.schemas import INGESTED, ROLLUPS


def rolled_up(spark: SparkSession, root: str, levels: Levels) -> str | None:
    done = [run_rollup(spark, root, table, levels) for table in ROLLUPS]
    told = [f"{each.points} points as {each.rows} rows of {each.table}" for each in done if each]
    return line("rollup", told)


def inventoried(spark: SparkSession, root: str) -> str | None:
    done = run_inventory(spark, root)
    return None if done is None else f"inventory: {done.pushes} pushes"


def detected(spark: SparkSession, root: str, rules: Sequence[Rule]) -> str | None:
    done = run_detect(spark, root, rules, datetime.now(UTC))
    if done is None:
        return None
    return f"detect: {len(done.opened)} opened, {len(done.closed)} closed, {done.going_on} go on"


def compacted(spark: SparkSession, root: str) -> str | None:
    dataset = Dataset(root)
    there = [table for table in (*INGESTED, *ROLLUPS) if dataset.open(table) is not None]
    done = [run_compact(root, table, spark) for table in there]
    return line("compact", [each.text() for each in done if each is not None])


def expired(root: str, kept_days: Mapping[str, int]) -> str | None:
    done = run_expire(root, datetime.now(UTC), kept_days)
    return line("expire", [f"{each.rows} rows of {each.table} before {each.before}" for each in done])


def vacuumed(root: str) -> str | None:
    return line("vacuum", [f"{files} files of {table}" for table, files in run_vacuum(root).items() if files])


def line(job: str, parts: Sequence[str]) -> str | None:
    return f"{job}: {', '.join(parts)}" if parts else None
