"""The jobs, each with a one-line report of its outcome; None if there was nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from odradek_spark.jobs.rules import Rule
from odradek_tables.dataset import Dataset
from odradek_tables.levels import Levels
from odradek_tables.schemas import INGESTED, ROLLUPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rolled_up(spark: SparkSession, root: str, levels: Levels) -> str | None:
    """Bring the rollups up to date."""
    from odradek_spark.jobs.rollup import run_rollup

    done = [run_rollup(spark, root, table, levels) for table in ROLLUPS]
    lines = [f"{each.points} points as {each.rows} rows of {each.table}" for each in done if each]
    return "rollup: " + ", ".join(lines) if lines else None


def inventoried(spark: SparkSession, root: str) -> str | None:
    """Bring the inventory of clients up to date."""
    from odradek_spark.jobs.inventory import run_inventory

    done = run_inventory(spark, root)
    return None if done is None else f"inventory: {done.pushes} pushes"


def detected(spark: SparkSession, root: str, rules: Sequence[Rule]) -> str | None:
    """Look for anomalies in new points."""
    from odradek_spark.jobs.episodes import run_detect

    done = run_detect(spark, root, rules, datetime.now(UTC))
    if done is None:
        return None
    return f"detect: {len(done.opened)} opened, {len(done.closed)} closed, {done.going_on} go on"


def compacted(spark: SparkSession, root: str) -> str | None:
    """Merge the files of past hours."""
    from odradek_spark.jobs.compact import run_compact

    dataset = Dataset(root)
    there = [table for table in (*INGESTED, *ROLLUPS) if dataset.open(table) is not None]
    done = [found for found in (run_compact(root, table, spark) for table in there) if found is not None]
    lines = [
        f"{each.files_before} files ({each.bytes_before} bytes) of {each.table} are now {each.files_after} "
        f"({each.bytes_after})"
        for each in done
    ]
    return "compact: " + ", ".join(lines) if lines else None


def expired(root: str, kept_days: Mapping[str, int]) -> str | None:
    """Remove days beyond the retention from the tables."""
    from odradek_spark.jobs.expire import run_expire

    done = run_expire(root, datetime.now(UTC), kept_days)
    lines = [f"{each.rows} rows of {each.table} before {each.before}" for each in done]
    return "expire: " + ", ".join(lines) if lines else None


def vacuumed(root: str, hours: int) -> str | None:
    """Delete the files that no table uses any more."""
    from odradek_spark.jobs.expire import run_vacuum

    lines = [f"{files} files of {table}" for table, files in run_vacuum(root, hours).items() if files]
    return "vacuum: " + ", ".join(lines) if lines else None
