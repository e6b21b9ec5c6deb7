"""Compaction: merges the many small files of a past hour into few large, sorted ones.

Ingest writes rows in the order of arrival; here they are sorted by client, so that a query about one client
reads little. Readers and ingest are not affected: files are exchanged in one commit, and if another writer
commits first, the exchange is abandoned.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odradek_spark.jobs.rollup import ROLLUPS
from odradek_spark.jobs.rollup_parts import Parts, write_merged
from odradek_spark.jobs.writing import GROUP_ROWS, write_in_tasks
from odradek_spark.tables.dataset import JOB, Dataset, DatasetError
from odradek_spark.tables.files import SORTED, Manifest, TableFiles, file_hour, file_system
from odradek_spark.tables.following import last_received
from odradek_spark.tables.log import CLOCK_SKEW_MAX, LiveFile, live
from odradek_spark.tables.schemas import DEAD_LETTER, HISTOGRAMS, POINTS, PUSHES, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE = timedelta(minutes=10)
"""Time after the end of an hour in which pushes of it may still arrive."""
TARGET_BYTES = 256 << 20
TARGET_ROWS = 4 << 20
"""A file is sorted in memory: 350 to 400 bytes for each row of ``points`` (bench/compact.py)."""
ORDER = {
    POINTS.name: ["client_instance_id", "name", "ts"],
    HISTOGRAMS.name: ["client_instance_id", "name", "ts"],
    PUSHES.name: ["client_instance_id", "recv_ts"],
    DEAD_LETTER.name: ["src_partition", "src_offset"],
}
COMPACTED = (POINTS, HISTOGRAMS, DEAD_LETTER, PUSHES, *ROLLUPS)


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a run for one table."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


def closed_before(dataset: Dataset) -> datetime | None:
    """The time before which no more pushes arrive: the latest receive time in the tables minus `GRACE`.

    It follows the receive times and not the clock, so that hours close one by one while an old topic is read.
    """
    last = last_received(dataset)
    return None if last is None else last - GRACE


def folder_end(partition: dict[str, str]) -> datetime:
    """The end of a folder's hour or day."""
    day = datetime.fromisoformat(partition["date"]).replace(tzinfo=UTC)
    if "hour" in partition:
        return day + timedelta(hours=int(partition["hour"]) + 1)
    return day + timedelta(days=1)


def is_sorted(file: LiveFile) -> bool:
    """Whether compaction wrote a file."""
    return file.path.rpartition("/")[2].startswith(SORTED)


def plan(files: Iterable[LiveFile], closed: datetime) -> list[list[LiveFile]]:
    """The groups of files to merge, each from one folder and limited in size.

    Folders that are open, or unchanged since their compaction, are skipped. Large sorted files are kept.
    """
    folders: dict[tuple[str, ...], list[LiveFile]] = defaultdict(list)
    for each in files:
        if folder_end(dict(each.partition)) <= closed and not (is_sorted(each) and is_large(each)):
            folders[tuple(each.partition.values())].append(each)
    return [
        group
        for folder in folders.values()
        if not all(is_sorted(each) for each in folder)
        for group in groups(folder)
    ]


def is_large(file: LiveFile) -> bool:
    return file.file_bytes >= TARGET_BYTES // 2 or file.rows >= TARGET_ROWS // 2


def groups(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    """Groups of a folder's files, each of about the target size."""
    found: list[list[LiveFile]] = [[]]
    held_bytes = rows = 0
    for each in files:
        if found[-1] and (held_bytes + each.file_bytes > TARGET_BYTES or rows + each.rows > TARGET_ROWS):
            found.append([])
            held_bytes = rows = 0
        found[-1].append(each)
        held_bytes += each.file_bytes
        rows += each.rows
    return found


def plan_rollup(files: Iterable[LiveFile], closed: datetime) -> list[list[LiveFile]]:
    """The groups of a rollup's parts to add up: each closed day, or if that is large, each closed hour.

    Hours and days that are added up already are skipped, until they get another part.
    """
    days: dict[str, list[LiveFile]] = defaultdict(list)
    for each in files:
        days[each.partition["date"]].append(each)
    return [group for day, there in days.items() for group in plan_day(day, there, closed - CLOCK_SKEW_MAX)]


def plan_day(day: str, files: list[LiveFile], closed: datetime) -> list[list[LiveFile]]:
    """The groups of one day. Files of earlier versions have rows of many hours."""
    hours: dict[int | None, list[LiveFile]] = defaultdict(list)
    for each in files:
        hours[file_hour(each.path)].append(each)
    if folder_end({"date": day}) <= closed and (None in hours or not is_large_rollup(files)):
        return [files] if len(files) > 1 or not is_sorted(files[0]) else []
    return [
        parts
        for hour, parts in hours.items()
        if hour is not None
        and folder_end({"date": day, "hour": str(hour)}) <= closed
        and not all(is_sorted(each) for each in parts)
    ]


def is_large_rollup(files: Iterable[LiveFile]) -> bool:
    """Whether the rows of some parts are too many for one file."""
    return sum(each.rows for each in files) > TARGET_ROWS


def merge_assigned(root: str, table: Table, paths: str) -> list[Manifest]:
    """`merge_files` with the paths as JSON."""
    return merge_files(root, table, json.loads(paths))


def merge_files(root: str, table: Table, paths: Sequence[str]) -> list[Manifest]:
    """Write the rows of some files of one folder as one sorted file."""
    system, base = file_system(root)
    # Files of older versions lack the added columns.
    there = [each for each in table.file_schema if each.name not in table.added]
    texts = [each.name for each in there if each.type == pa.string()]
    parts = []
    for path in paths:
        with pq.ParquetFile(f"{base}/{table.name}/{path}", filesystem=system, read_dictionary=texts) as file:
            parts.append(file.read())
    rows = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    for name in set(table.added) - set(rows.schema.names):
        rows = rows.append_column(name, pa.nulls(rows.num_rows, table.schema.field(name).type))
    for name, value in folder_values(paths[0]).items():
        column = pa.array([value], pa.string()).cast(table.schema.field(name).type)
        rows = rows.append_column(name, pa.repeat(column[0], rows.num_rows))
    order = [(name, "ascending") for name in ORDER[table.name]]
    keys = pa.table({name: sort_key(rows[name]) for name, _ in order})
    in_order = pc.sort_indices(keys, order)
    with TableFiles(root, table, SORTED) as files:
        for start in range(0, rows.num_rows, GROUP_ROWS):
            files.write(rows.take(in_order.slice(start, GROUP_ROWS)))
    return files.manifests


def sort_key(column: pa.ChunkedArray) -> pa.Array:
    """A column that sorts in the same order: numbers instead of text."""
    whole = column.combine_chunks()
    if not pa.types.is_dictionary(whole.type):
        return whole
    return pc.rank(whole.dictionary, tiebreaker="dense").take(whole.indices)


def folder_values(path: str) -> dict[str, str]:
    """The partition columns in a path."""
    return dict(part.split("=", 1) for part in path.split("/")[:-1])


def run_compact(spark: SparkSession, root: str, table: Table) -> Compacted | None:
    """Merge the files of closed folders.

    Returns:
        None if there is nothing to do, or if another writer was faster.

    Raises:
        DatasetError: The table does not exist, or has columns of a newer version.
    """
    dataset = Dataset(root)
    check_columns(dataset, table)
    closed = closed_before(dataset)
    if closed is None:
        return None
    there = live(dataset.existing(table))
    files = plan_rollup(there, closed) if table in ROLLUPS else plan(there, closed)
    if not files:
        return None
    old = [each for group in files for each in group]
    merge = merged_parts if table in ROLLUPS else merged_files
    manifests = merge(spark, root, table, files)
    if not dataset.exchange(table, old, manifests, {JOB: "compact"}, data_change=False):
        return None
    return Compacted(
        table.name,
        len(old),
        len(manifests),
        sum(each.file_bytes for each in old),
        sum(each.file_bytes for each in manifests),
    )


def check_columns(dataset: Dataset, table: Table) -> None:
    """Check that no column gets lost: rows are rewritten with the columns that this version knows.

    Raises:
        DatasetError: The table has other columns, or does not exist.
    """
    newer = {each.name for each in dataset.existing(table).schema().fields} - set(table.schema.names)
    if newer:
        raise DatasetError(
            f"{dataset.uri(table)} has columns of a newer version ({', '.join(sorted(newer))}), which "
            "compaction would lose: update odradek-spark"
        )


def merged_files(
    spark: SparkSession, root: str, table: Table, files: Sequence[Sequence[LiveFile]]
) -> list[Manifest]:
    """Merge each group of files into one, each in a task of its own."""
    groups_of_paths = [json.dumps([each.path for each in group]) for group in files]
    return write_in_tasks(spark, partial(merge_assigned, root, table), groups_of_paths)


def merged_parts(
    spark: SparkSession, root: str, table: Table, files: Sequence[Sequence[LiveFile]]
) -> list[Manifest]:
    """Add up each group of parts, each in a task of its own; large ones to a file for each hour."""
    assigned = [
        Parts(tuple(each.path for each in group), SORTED, by_hour=is_of_hour(group)) for group in files
    ]
    work = partial(write_merged, root, table, table, None)
    return write_in_tasks(spark, work, [each.text() for each in assigned])


def is_of_hour(files: Sequence[LiveFile]) -> bool:
    """Whether files are of one hour, or too many for one file of a day."""
    return is_large_rollup(files) or len({file_hour(each.path) for each in files}) == 1
