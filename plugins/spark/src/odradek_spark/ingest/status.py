"""The progress of ingest, read from the tables without asking the ingesting process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import PUSHES

RECENT = 50
"""Commits to search for the last batch; some are by maintenance."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of ingest, from the history of the table ``pushes``."""

    at: datetime
    pushes: int
    points: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of several batches."""

    batches: int
    pushes: int
    points: int
    dead_letters: int

    @property
    def records(self) -> int:
        """Records of the topic."""
        return self.pushes + self.dead_letters

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.batches + other.batches,
            self.pushes + other.pushes,
            self.points + other.points,
            self.dead_letters + other.dead_letters,
        )


NOTHING = Totals(0, 0, 0, 0)


def version(dataset: Dataset) -> int:
    """The version of ``pushes``, the table that is committed last; -1 if it does not exist."""
    found = dataset.open(PUSHES)
    return -1 if found is None else found.version()


def last_batch(root: str) -> Batch | None:
    """The batch that was committed last; None if there is none."""
    found = Dataset(root).open(PUSHES)
    return None if found is None else next(batches(found.history(RECENT)), None)


def batches_since(dataset: Dataset, before: int) -> tuple[Totals, int]:
    """The totals of the batches since a version, and the version that they reach."""
    found = dataset.open(PUSHES)
    if found is None or found.version() <= before:
        return NOTHING, before
    came = list(batches(found.history(found.version() - before)))
    total = Totals(
        len(came),
        sum(each.pushes for each in came),
        sum(each.points for each in came),
        sum(each.dead_letters for each in came),
    )
    return total, found.version()


def batches(history: list[dict[str, Any]]) -> Iterator[Batch]:
    """The commits that were batches of ingest, the latest first."""
    for each in history:
        if "batch" in each:
            yield Batch(
                at=datetime.fromtimestamp(each["timestamp"] / 1000, UTC),
                pushes=int(each["pushes"]),
                points=int(each["points"]),
                dead_letters=int(each.get("deadLetters", 0)),
            )
