"""Retention: days that are too old leave the tables; later their files leave the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.log import LiveFile, live
from odradek_spark.tables.schemas import BY_NAME, Table

KEPT_DAYS: Final[Mapping[str, int]] = {
    "points": 7,
    "histograms": 7,
    "dead_letter": 7,
    "pushes": 7,
    "rollup_5m": 30,
    "rollup_1h": 400,
    "anomalies": 400,
}
"""By default. ``clients`` has a row for each instance, not for each push: it is kept."""
VACUUM_HOURS = 24
"""So long a file that no table has any more is left to those who read it still, and one that no table has
yet to those who write it."""
EXPIRED_BEFORE = "expiredBefore"
"""In the history of a table: the first day that was kept."""
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Expired:
    """What left a table."""

    table: str
    before: str
    """The first day that is kept."""
    files: int
    rows: int


def expire(dataset: Dataset, table: Table, now: datetime, kept_days: int) -> Expired | None:
    """Take the days out of a table that are older than it keeps, in one commit.

    Args:
        dataset: Whose table it is.
        table: Which; its folders are days.
        now: With a time zone.
        kept_days: Whole days before today that stay.

    Returns:
        None if there are none, or no such table, or if compaction has the old ones in hand: it is for later.
    """
    before = f"{now.astimezone(UTC) - timedelta(days=kept_days):%Y-%m-%d}"
    for _ in range(ATTEMPTS):
        current = dataset.open(table)
        old = old_files(live(current), before) if current is not None else []
        if not old:
            return None
        if dataset.exchange(table, old, [], {"job": "expire", EXPIRED_BEFORE: before}, data_change=True):
            return Expired(table.name, before, len(old), sum(each.rows for each in old))
    return None


def old_files(files: list[LiveFile], before: str) -> list[LiveFile]:
    """Files of days before a day."""
    return [each for each in files if each.partition["date"] < before]


def run_expire(root: str, now: datetime, kept_days: Mapping[str, int] = KEPT_DAYS) -> list[Expired]:
    """Take what is too old out of every table that is there. Needs no Spark."""
    dataset = Dataset(root)
    found = (expire(dataset, BY_NAME[name], now, days) for name, days in kept_days.items())
    return [each for each in found if each is not None]


def run_vacuum(root: str, hours: int = VACUUM_HOURS) -> dict[str, int]:
    """Delete the files that no table has: those that compaction and expiry took out, and those that were
    never committed because a task failed. Needs no Spark.

    Args:
        root: Of the dataset.
        hours: Files that are younger stay. A batch of ingest has to be through by then.

    Returns:
        By table, how many files went.

    Raises:
        ValueError: Less than an hour: what is being written now would be lost.
    """
    if hours < 1:
        raise ValueError(f"vacuum: expected at least 1 hour, found {hours}")
    dataset = Dataset(root)
    gone = {}
    for table in BY_NAME.values():
        current = dataset.open(table)
        if current is not None:
            gone[table.name] = len(
                current.vacuum(
                    retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True
                )
            )
    return gone
