"""Compaction: merges the many small files of a past hour into few large, sorted ones.

Ingest writes rows in the order of arrival; here they are sorted by client, so that a query about one client
reads little. Readers and ingest are not affected: files are exchanged in one commit, and if another writer
took one of them first, the exchange is abandoned.

``DeltaTable.optimize`` is not used: if two runs meet, both commit, and each row of the hour is there twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odradek_tables.dataset import JOB, Dataset, DatasetError
from odradek_tables.duckdb_files import add_table, bounded
from odradek_tables.files import SORTED, Manifest, TableFiles, file_system
from odradek_tables.following import last_received
from odradek_tables.log import CLOCK_SKEW_MAX, LiveFile, live
from odradek_tables.schemas import DEAD_LETTER, HISTOGRAMS, POINTS, PUSHES, ROLLUPS, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE: Final = timedelta(minutes=10)
"""Time after the end of an hour in which pushes of it may still arrive."""
TARGET_ROWS: Final = 32 << 20
"""Limit of the rows of a file: about 128 MB of ``points``."""
GROUP_ROWS: Final = 1 << 17
"""Rows of a row group: a question about a client reads a few of them."""
MOST_PARTS: Final = 12
"""A day of a rollup that is not over yet is merged once it has this many new files."""
OLD: Final = "BYTE_STREAM_SPLIT"
"""The encoding of ``value`` in earlier versions: Spark before 4.3 and fastparquet cannot decode it."""
ORDER: Final[Mapping[str, str]] = {
    POINTS.name: "client_instance_id, name, ts, src_offset, src_idx",
    HISTOGRAMS.name: "client_instance_id, name, ts, src_offset, src_idx",
    PUSHES.name: "client_instance_id, recv_ts",
    DEAD_LETTER.name: "src_partition, src_offset",
}


@dataclass(slots=True)
class Compacted:
    table: str
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def add(self, old: Sequence[LiveFile], new: Sequence[Manifest]) -> None:
        self.files_before += len(old)
        self.files_after += len(new)
        self.bytes_before += sum(each.file_bytes for each in old)
        self.bytes_after += sum(each.file_bytes for each in new)

    def text(self) -> str:
        before = f"{self.files_before} files ({self.bytes_before} bytes)"
        return f"{before} of {self.table} are now {self.files_after} ({self.bytes_after})"


def run_compact(root: str, table: Table, spark: SparkSession | None = None) -> Compacted | None:
    """Merge the files of closed folders of a table, one commit for each; None if there are none.

    Rollups need the session, which adds their parts up.

    Raises:
        DatasetError: The table does not exist, or has columns of a newer version.
    """
    dataset = Dataset(root)
    current = dataset.existing(table)
    check_columns(dataset, table)
    last = last_received(dataset)
    if last is None:
        return None
    done = Compacted(table.name)
    for folder in plan(live(current), last - GRACE, is_rollup=table in ROLLUPS):
        new = added_up(spark, root, table, folder) if table in ROLLUPS else merged(root, table, folder)
        if dataset.exchange(table, folder, new, {JOB: "compact"}, data_change=False):
            done.add(folder, new)
    return done if done.files_before else None


def plan(files: Iterable[LiveFile], closed: datetime, *, is_rollup: bool = False) -> list[list[LiveFile]]:
    """The files to merge, by folder: of hours and days that are over, and have files that are not sorted.

    No more pushes arrive before ``closed``. It follows the receive times and not the clock, so that hours
    close one by one while an old topic is read. Rows of rollups go by ``ts``; they are parts, which can be
    added up at any time.
    """
    found = []
    for folder in by_folder(each for each in files if not is_sorted(each) or each.rows < TARGET_ROWS // 2):
        fresh = sum(not is_sorted(each) for each in folder)
        is_over = folder_end(folder[0].partition) <= closed - CLOCK_SKEW_MAX * is_rollup
        if fresh and (is_over or (is_rollup and fresh >= MOST_PARTS)):
            found.append(folder)
    return found


def by_folder(files: Iterable[LiveFile]) -> Iterable[list[LiveFile]]:
    folders: dict[tuple[str, ...], list[LiveFile]] = defaultdict(list)
    for each in files:
        folders[tuple(each.partition.values())].append(each)
    return folders.values()


def folder_end(partition: Mapping[str, str]) -> datetime:
    day = datetime.fromisoformat(partition["date"]).replace(tzinfo=UTC)
    if "hour" in partition:
        return day + timedelta(hours=int(partition["hour"]) + 1)
    return day + timedelta(days=1)


def is_sorted(file: LiveFile) -> bool:
    return file.path.rpartition("/")[2].startswith(SORTED)


def check_columns(dataset: Dataset, table: Table) -> None:
    """Refuse columns of a newer version: rows are rewritten with those that this version knows."""
    newer = {each.name for each in dataset.existing(table).schema().fields} - set(table.schema.names)
    if newer:
        raise DatasetError(
            f"{dataset.uri(table)} has columns of a newer version ({', '.join(sorted(newer))}), which "
            "compaction would lose: update odradek-spark"
        )


def merged(root: str, table: Table, files: Sequence[LiveFile]) -> list[Manifest]:
    """Write the rows of some files of one folder as sorted files, which are not committed yet."""
    with bounded() as opened, TableFiles(root, table, SORTED) as writing:
        add_table(opened, root, table, [f"{root}/{table.name}/{each.path}" for each in files])
        rows = opened.sql(f"FROM {table.name} ORDER BY {ORDER[table.name]}")
        for batch in rows.to_arrow_reader(GROUP_ROWS):
            writing.write(pa.Table.from_batches([batch]).cast(table.schema))
            for key, file in list(writing.growing.items()):
                if file.rows >= TARGET_ROWS:
                    writing.finish(key)
    return writing.manifests


def added_up(
    spark: SparkSession | None, root: str, table: Table, files: Sequence[LiveFile]
) -> list[Manifest]:
    """Write the sums of some parts of a rollup, which are not committed yet."""
    from odradek_spark.jobs.rollup import in_order  # Spark is imported by what uses it
    from odradek_spark.jobs.rollup import merged as sums
    from odradek_spark.jobs.writing import write_frame
    from odradek_spark.load import read_files

    assert spark is not None
    parts = read_files(spark, root, table, [f"{root}/{table.name}/{each.path}" for each in files])
    tasks = 1 + sum(each.rows for each in files) // TARGET_ROWS
    return write_frame(in_order(sums(parts, table), tasks), root, table, SORTED)


def run_rewrite(root: str) -> int:
    """Rewrite the files of ``points`` that have the old encoding, one commit for each folder. Needs no Spark.

    A folder that another job changes meanwhile is left to the next run. Returns the number of replaced files.

    Raises:
        DatasetError: The table does not exist, or has columns of a newer version.
    """
    dataset = Dataset(root)
    check_columns(dataset, POINTS)
    found = live(dataset.existing(POINTS))
    done = 0
    for files in by_folder(each for each in found if is_old(f"{dataset.uri(POINTS)}/{each.path}")):
        new = merged(dataset.root, POINTS, files)
        if dataset.exchange(POINTS, files, new, {JOB: "rewrite"}, data_change=False):
            done += len(files)
    return done


def is_old(path: str) -> bool:
    system, place = file_system(path)
    with pq.ParquetFile(place, filesystem=system) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    return any(OLD in group.column(at).encodings for group in groups for at in range(group.num_columns))
