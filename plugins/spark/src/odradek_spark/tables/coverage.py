"""The metrics that ``rollup_1h`` has, and the first complete hour of each, in a property of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from deltalake import DeltaTable

from odradek_spark.tables.levels import EVERYTHING
from odradek_spark.tables.log import CLOCK_SKEW_MAX

PROPERTY = "odradek.clientMetrics"
"""Property of ``rollup_1h``: by prefix, the first hour for which its metrics are complete; empty for all."""


def has_prefix(name: str, prefix: str) -> bool:
    """Whether a prefix selects a metric, or every metric of another prefix."""
    return prefix == EVERYTHING or name.startswith(prefix)


def coverage(table: DeltaTable) -> Mapping[str, str] | None:
    """By prefix: the first hour for which ``rollup_1h`` has its metrics, ISO 8601, or empty for all.

    None for a table of an earlier version, which has all metrics.
    """
    text = table.metadata().configuration.get(PROPERTY)
    found: Mapping[str, str] | None = None if text is None else json.loads(text)
    return found


def covered_from(covered: Mapping[str, str] | None, name: str) -> str | None:
    """The first hour for which a metric is complete; empty for all, None for none."""
    if covered is None:
        return ""
    return min((since for prefix, since in covered.items() if has_prefix(name, prefix)), default=None)


def cover(table: DeltaTable, prefixes: Sequence[str], last_received: datetime | None) -> None:
    """Note the metrics that ``rollup_1h`` has from now on, in a commit of its own if they changed.

    Args:
        table: The table ``rollup_1h``.
        prefixes: The metrics.
        last_received: The latest receive time so far. A new metric is complete from the first hour on of
            which no point has arrived.

    Raises:
        CommitFailedError: Another writer committed first.
    """
    before = coverage(table)
    hour = "" if last_received is None else first_whole_hour(last_received + CLOCK_SKEW_MAX).isoformat()
    known = {prefix: covered_from(before, prefix) for prefix in prefixes}
    now = {prefix: hour if since is None else since for prefix, since in known.items()}
    if now != before:
        table.alter.set_table_properties({PROPERTY: json.dumps(now)}, raise_if_not_exists=False)


def first_whole_hour(at: datetime) -> datetime:
    """The first hour that begins at a time or later."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    return hour if hour == at else hour + timedelta(hours=1)
