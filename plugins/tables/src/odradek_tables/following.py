"""For jobs that follow a table: the rows added since their last run, in complete batches.

The history of a table has the offsets of each batch, and rows have theirs, so it does not matter in which
files the rows are by now: compaction, erasure and vacuum do not disturb a job that is late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

import pyarrow.parquet as pq
from deltalake import DeltaTable

from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.files import Manifest, file_system
from odradek_tables.log import (
    SOURCE_RANGES,
    LogGone,
    OffsetSpan,
    Version,
    live,
    paths_between,
    paths_of,
    version,
)
from odradek_tables.schemas import ERASURES, PUSHES, Table

REPLAY: Final = "replay"
"""The application id of the job that adds decoded records again to all tables."""
SILENT_DAYS: Final = 1
"""Whole days without a push, by receive time, after which the rows of an instance are settled."""
REPLAYED: Final = "replayedRanges"
"""Key in the history of a table: the records whose pushes a replay added, each a partition, start and end."""


@dataclass(frozen=True, slots=True)
class News:
    """The rows that were added to a table since a job's last run."""

    after: int | None
    """The last version that the job has processed; None if it has processed none."""
    version: int
    """The version up to which the rows are."""
    files: Sequence[str]
    """The full paths of the files that have them."""
    spans: Sequence[OffsetSpan] | None
    """The records of the rows; None for all rows of the files."""
    since: datetime | None
    """The earliest receive time of the rows."""
    rows: int
    """Their number; of points, including histograms."""


def news(dataset: Dataset, followed: Table, job: Table, app_id: str) -> News | None:
    """The rows that were added to a table since a job's last commit.

    A batch of ingest is included once all tables have it, that is, once ``pushes`` has it. The table ``job``
    stores the number of the job; None if the table that it follows has no new version.

    Raises:
        DatasetError: The table does not exist, or its log no longer reaches back to the last run.
    """
    after = dataset.committed(job, app_id)
    current = dataset.existing(followed)
    if after is None:
        return everything(dataset, followed, current)
    try:
        numbers = range(after + 1, current.version() + 1)
        later = (version(dataset.uri(followed), number) for number in numbers)
        found = whole_batches(dataset, later)
    except LogGone as error:
        raise DatasetError(
            f"{error}: the last run of {app_id} was too long ago to continue from. Remove "
            f"{dataset.uri(job)}, and the next run builds it again"
        ) from error
    if not found:
        return None
    spans = joined(span for each in found for span in spans_of(each))
    times = [file.recv_min for each in found if has_records(each) for file in each.added]
    return News(
        after=after,
        version=found[-1].number,
        files=paths_of(current, spans),
        spans=spans,
        since=min((each for each in times if each is not None), default=None),
        rows=sum(int(each.info.get(followed.name, 0)) for each in found if has_records(each)),
    )


def everything(dataset: Dataset, followed: Table, current: DeltaTable) -> News | None:
    """All rows of a table, for a job's first run."""
    number = last_whole(dataset, dataset.uri(followed), current.version())
    if number != current.version():
        current.load_as_version(number)
    files = live(current)
    if not files:
        return None
    since = min((each.recv_min for each in files if each.recv_min is not None), default=None)
    paths = paths_between(current, followed.time)
    return News(None, number, paths, None, since, sum(each.rows for each in files))


def last_received(dataset: Dataset) -> datetime | None:
    """The latest receive time in the tables; None if there is no push."""
    times = [each.recv_max for each in live(dataset.existing(PUSHES)) if each.recv_max is not None]
    return max(times, default=None)


def unsettled_from(dataset: Dataset) -> date:
    """The first day whose rows of the inventory are not settled."""
    last = last_received(dataset) or datetime.min.replace(tzinfo=UTC, year=1970)
    return (last - timedelta(days=SILENT_DAYS)).date()


def has_records(found: Version) -> bool:
    return SOURCE_RANGES in found.info or REPLAYED in found.info


def spans_of(found: Version) -> list[OffsetSpan]:
    replayed = [(part, start, end) for part, start, end in json.loads(found.info.get(REPLAYED, "[]"))]
    batch: Mapping[str, Sequence[int]] = json.loads(found.info.get(SOURCE_RANGES, "{}"))
    return [*replayed, *((int(part), start, end) for part, (start, end) in batch.items())]


def joined(spans: Iterable[OffsetSpan]) -> list[OffsetSpan]:
    """The spans in order, with those joined that touch or overlap."""
    found: list[OffsetSpan] = []
    for part, start, end in sorted(spans):
        if found and found[-1][0] == part and start <= found[-1][2]:
            found[-1] = part, found[-1][1], max(end, found[-1][2])
        else:
            found.append((part, start, end))
    return found


def spans_in(dataset: Dataset, pushes: Iterable[Manifest]) -> list[OffsetSpan]:
    """The records in some files of ``pushes``."""
    found: list[OffsetSpan] = []
    system, base = file_system(dataset.uri(PUSHES))
    for each in pushes:
        with pq.ParquetFile(f"{base}/{each.path}", filesystem=system) as file:
            rows = file.read(["src_partition", "src_offset"]).to_pylist()
        found += ((row["src_partition"], row["src_offset"], row["src_offset"] + 1) for row in rows)
    return joined(found)


def last_whole(dataset: Dataset, uri: str, until: int) -> int:
    """The last version without an incomplete batch; ingest commits one batch after the other."""
    number = until
    for candidate in range(until, 0, -1):
        try:
            found = version(uri, candidate)
        except LogGone:  # batches that old are complete
            break
        if not whole_batches(dataset, [found]):
            number = candidate - 1
        elif any(is_batch(app_id) for app_id in found.numbers):
            break
    return number


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


def erased_ranges(dataset: Dataset) -> list[OffsetSpan]:
    """The records that were erased: partition, first offset, end offset (last + 1)."""
    current = dataset.open(ERASURES)
    if current is None:
        return []
    return [
        (int(partition), start, end)
        for text in current.to_pyarrow_table(columns=["records"])["records"].to_pylist()
        for partition, ranges in json.loads(text).items()
        for start, end in ranges
    ]
