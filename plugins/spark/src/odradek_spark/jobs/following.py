"""Jobs that follow a table: what came since their last run, and that it is whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.log import AddedFile, LogGone, Version, versions
from odradek_spark.tables.schemas import PUSHES, Table

REPLAY = "replay"
"""The job that adds to all tables what was decoded again."""
NEVER = -1
"""The number of a job that has not run: before the first version."""


@dataclass(frozen=True, slots=True)
class News:
    """What came to a table since a job's last run."""

    after: int | None
    """The last version that the job has seen; None if it has seen none."""
    version: int
    """The version up to which this is."""
    files: tuple[AddedFile, ...]

    @property
    def since(self) -> datetime | None:
        """The earliest receive time of what came."""
        return min((each.recv_min for each in self.files if each.recv_min is not None), default=None)

    @property
    def rows(self) -> int:
        """How many rows came."""
        return sum(each.rows for each in self.files)


def news(dataset: Dataset, followed: Table, job: Table, app_id: str) -> News | None:
    """What came to a table since a job committed last.

    A batch of ingest counts when all tables have it, which ``pushes`` says.

    Args:
        dataset: Whose tables they are.
        followed: The table that is followed.
        job: The table that keeps the job's number.
        app_id: The job.

    Returns:
        None if the table has no new version.

    Raises:
        DatasetError: There is no such table, or its log does not go back to the last run any more.
    """
    after = dataset.committed(job, app_id)
    current = dataset.existing(followed)
    try:
        found = list(
            whole_batches(
                dataset, versions(dataset.uri(followed), NEVER if after is None else after, current.version())
            )
        )
    except LogGone as error:
        raise DatasetError(
            f"{error}: {app_id} cannot go on. Remove {dataset.uri(job)} to have it made anew"
        ) from error
    if not found:
        return None
    return News(after, found[-1].number, tuple(file for each in found for file in each.added))


def whole_batches(dataset: Dataset, found: Iterable[Version]) -> list[Version]:
    """The versions before the first whose batch of ingest is not in all tables yet."""
    pushes = dataset.existing(PUSHES)
    whole: list[Version] = []
    for each in found:
        for app_id, end in each.numbers.items():
            if is_batch(app_id) and (pushes.transaction_version(app_id) or 0) < end:
                return whole
        whole.append(each)
    return whole


def is_batch(app_id: str) -> bool:
    """Whether a commit is one of several, to all tables, the last of them to ``pushes``."""
    return app_id == REPLAY or app_id.startswith("source:")
