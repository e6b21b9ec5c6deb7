"""The progress of ingest, read from the tables without asking the ingesting process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts
from odradek_tables.schemas import PUSHES

RECENT = 50
"""Commits to search for the last batch; some are by maintenance."""


def version(dataset: Dataset) -> int:
    """The version of ``pushes``, the table that is committed last; -1 if it does not exist."""
    found = dataset.open(PUSHES)
    return -1 if found is None else found.version()


def last_batch(root: str) -> tuple[datetime, Counts] | None:
    """The time and the contents of the batch that was committed last; None if there is none."""
    found = Dataset(root).open(PUSHES)
    return None if found is None else next(batches(found.history(RECENT)), None)


def batches_since(dataset: Dataset, before: int) -> tuple[Counts, int]:
    """The totals of the batches since a version, and the version that they reach."""
    found = dataset.open(PUSHES)
    if found is None or found.version() <= before:
        return Counts(), before
    came = (each for _, each in batches(found.history(found.version() - before)))
    return sum(came, Counts()), found.version()


def batches(history: list[dict[str, Any]]) -> Iterator[tuple[datetime, Counts]]:
    """The commits that were batches of ingest, the latest first."""
    for each in history:
        if "batch" in each:
            yield (
                datetime.fromtimestamp(each["timestamp"] / 1000, UTC),
                Counts(int(each["pushes"]), int(each["points"]), int(each.get("deadLetters", 0)), batches=1),
            )
