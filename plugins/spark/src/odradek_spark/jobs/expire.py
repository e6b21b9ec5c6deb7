"""Retention: removes old days from the tables, and later deletes their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from odradek_tables.dataset import JOB, Dataset
from odradek_tables.following import unsettled_from
from odradek_tables.retention import KEPT_DAYS
from odradek_tables.schemas import BY_NAME, CLIENTS, Table

VACUUM_HOURS = 24
"""Default age of files to delete: younger ones may still be read, or be written and not committed yet."""
EXPIRED_BEFORE = "expiredBefore"
"""Key in the history of a table: the first day that was kept."""


@dataclass(frozen=True, slots=True)
class Expired:
    table: str
    before: str
    """The first day that is kept."""
    rows: int


def expire(dataset: Dataset, table: Table, now: datetime, kept_days: int) -> Expired | None:
    """Remove the days beyond the retention from a table, in one commit; of ``clients`` only settled rows.

    ``kept_days`` are whole days before today. None if there is nothing to remove, or no such table.
    """
    if dataset.open(table) is None:
        return None
    before = f"{now.astimezone(UTC) - timedelta(days=kept_days):%Y-%m-%d}"
    if table is CLIENTS:
        old = f"last_seen < '{min(before, unsettled_from(dataset).isoformat())}T00:00:00Z'"
    else:
        old = f"date < '{before}'"
    rows = dataset.delete(table, old, {JOB: "expire", EXPIRED_BEFORE: before})
    return Expired(table.name, before, rows) if rows else None


def run_expire(root: str, now: datetime, kept_days: Mapping[str, int] = KEPT_DAYS) -> list[Expired]:
    """Remove the days beyond the retention from all existing tables. Needs no Spark."""
    dataset = Dataset(root)
    found = (expire(dataset, BY_NAME[name], now, days) for name, days in kept_days.items())
    return [each for each in found if each is not None]


def run_vacuum(root: str, hours: int = VACUUM_HOURS) -> dict[str, int]:
    """Delete files that no table uses. Needs no Spark.

    These are files that compaction or expiry removed, and files of failed tasks, which were never committed.
    Younger ones are kept: ``hours`` must exceed the duration of a batch of ingest.

    Returns:
        The number of deleted files, by table.

    Raises:
        ValueError: ``hours`` is less than 1, so files that are being written could be deleted.
    """
    if hours < 1:
        raise ValueError(f"vacuum: expected at least 1 hour, found {hours}")
    dataset = Dataset(root)
    gone = {}
    for table in BY_NAME.values():
        current = dataset.open(table)
        if current is not None:
            found = current.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            gone[table.name] = len(found)
    return gone
