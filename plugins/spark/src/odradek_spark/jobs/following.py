"""Jobs that follow a table: what came since their last run, and that it is whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from deltalake import DeltaTable
from pyarrow import fs

from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.files import file_system
from odradek_spark.tables.log import AddedFile, LogGone, Version, live, versions
from odradek_spark.tables.schemas import PUSHES, Table

REPLAY = "replay"
"""The job that adds to all tables what was decoded again."""


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
    if after is None:
        return everything(dataset, current, dataset.uri(followed))
    try:
        found = whole_batches(dataset, versions(dataset.uri(followed), after, current.version()))
        files = [file for each in found for file in each.added]
        check_there(dataset, followed, current, files)
    except (LogGone, FileNotFoundError) as error:
        raise DatasetError(
            f"{error}: {app_id} ran too long ago to go on. Remove {dataset.uri(job)} to have it made anew"
        ) from error
    return News(after, found[-1].number, tuple(files)) if found else None


def everything(dataset: Dataset, current: DeltaTable, uri: str) -> News | None:
    """All that a table has, for a job's first run: what came long ago may be in other files by now."""
    number = last_whole(dataset, uri, current.version())
    if number != current.version():
        current.load_as_version(number)
    files = tuple(
        AddedFile(each.path, each.rows, each.partition, each.recv_min, each.recv_max)
        for each in live(current)
    )
    return News(None, number, files) if files else None


def last_whole(dataset: Dataset, uri: str, until: int) -> int:
    """The last version that has no part of a batch; ingest commits one after the other."""
    number = until
    for candidate in range(until, 0, -1):
        try:
            (found,) = versions(uri, candidate - 1, candidate)
        except LogGone:  # what is so old is whole
            break
        if not whole_batches(dataset, [found]):
            number = candidate - 1
        elif any(is_batch(app_id) for app_id in found.numbers):
            break
    return number


def check_there(dataset: Dataset, followed: Table, current: DeltaTable, files: Sequence[AddedFile]) -> None:
    """Make sure that the files are on disk still, those that were taken out of the table included.

    Raises:
        FileNotFoundError: One was vacuumed.
    """
    there = {each.path for each in live(current)}
    system, base = file_system(dataset.uri(followed))
    taken_out = [f"{base}/{each.path}" for each in files if each.path not in there]
    for info in system.get_file_info(taken_out):
        if info.type is fs.FileType.NotFound:
            raise FileNotFoundError(f"{info.path} was vacuumed")


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
