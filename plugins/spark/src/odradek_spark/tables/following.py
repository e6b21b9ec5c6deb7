"""For jobs that follow a table: the rows added since their last run, in complete batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from deltalake import DeltaTable
from pyarrow import fs

from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.erased import with_successors
from odradek_spark.tables.files import file_system
from odradek_spark.tables.log import AddedFile, LogGone, Version, live, versions
from odradek_spark.tables.schemas import PUSHES, Table

REPLAY = "replay"
"""The application id of the job that adds decoded records again to all tables."""


@dataclass(frozen=True, slots=True)
class News:
    """The rows that were added to a table since a job's last run."""

    after: int | None
    """The last version that the job has processed; None if it has processed none."""
    version: int
    """The version up to which the rows are."""
    files: tuple[AddedFile, ...]

    @property
    def since(self) -> datetime | None:
        """The earliest receive time of the rows."""
        return min((each.recv_min for each in self.files if each.recv_min is not None), default=None)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(each.rows for each in self.files)


def news(dataset: Dataset, followed: Table, job: Table, app_id: str) -> News | None:
    """The rows that were added to a table since a job's last commit.

    A batch of ingest is included once all tables have it, that is, once ``pushes`` has it.

    Args:
        dataset: The dataset.
        followed: The table that the job reads.
        job: The table that stores the job's number.
        app_id: The id of the job.

    Returns:
        None if the table has no new version.

    Raises:
        DatasetError: The table does not exist, or its log no longer reaches back to the last run.
    """
    after = dataset.committed(job, app_id)
    current = dataset.existing(followed)
    if after is None:
        return everything(dataset, current, dataset.uri(followed))
    try:
        later = list(versions(dataset.uri(followed), after, current.version()))
        found = whole_batches(dataset, later)
        files = with_successors([file for each in found for file in each.added], later)
        check_there(dataset, followed, current, files)
    except (LogGone, FileNotFoundError) as error:
        raise DatasetError(
            f"{error}: the last run of {app_id} was too long ago to continue from. Remove "
            f"{dataset.uri(job)}, and the next run builds it again"
        ) from error
    return News(after, found[-1].number, tuple(files)) if found else None


def last_received(dataset: Dataset) -> datetime | None:
    """The latest receive time in the tables; None if there is no push."""
    times = [each.recv_max for each in live(dataset.existing(PUSHES)) if each.recv_max is not None]
    return max(times, default=None)


def everything(dataset: Dataset, current: DeltaTable, uri: str) -> News | None:
    """All rows of a table, for a job's first run: old rows may be in other files by now."""
    latest = current.version()
    number = last_whole(dataset, uri, latest)
    if number != latest:
        current.load_as_version(number)
    files = [
        AddedFile(each.path, each.rows, each.partition, each.recv_min, each.recv_max)
        for each in live(current)
    ]
    left = with_successors(files, versions(uri, number, latest))
    return News(None, number, tuple(left)) if files else None


def last_whole(dataset: Dataset, uri: str, until: int) -> int:
    """The last version without an incomplete batch; ingest commits one batch after the other."""
    number = until
    for candidate in range(until, 0, -1):
        try:
            (found,) = versions(uri, candidate - 1, candidate)
        except LogGone:  # batches that old are complete
            break
        if not whole_batches(dataset, [found]):
            number = candidate - 1
        elif any(is_batch(app_id) for app_id in found.numbers):
            break
    return number


def check_there(dataset: Dataset, followed: Table, current: DeltaTable, files: Sequence[AddedFile]) -> None:
    """Check that the files still exist, including those that were removed from the table.

    Raises:
        FileNotFoundError: A file was vacuumed.
    """
    there = {each.path for each in live(current)}
    system, base = file_system(dataset.uri(followed))
    taken_out = [f"{base}/{each.path}" for each in files if each.path not in there]
    for info in system.get_file_info(taken_out):
        if info.type is fs.FileType.NotFound:
            raise FileNotFoundError(f"{info.path} was vacuumed")


def whole_batches(dataset: Dataset, found: Iterable[Version]) -> list[Version]:
    """The versions before the first one whose batch of ingest is incomplete."""
    pushes = dataset.existing(PUSHES)
    whole: list[Version] = []
    for each in found:
        for app_id, end in each.numbers.items():
            if is_batch(app_id) and (pushes.transaction_version(app_id) or 0) < end:
                return whole
        whole.append(each)
    return whole


def is_batch(app_id: str) -> bool:
    """Whether a commit belongs to a batch, which is committed to all tables, to ``pushes`` last."""
    return app_id == REPLAY or app_id.startswith("source:")
