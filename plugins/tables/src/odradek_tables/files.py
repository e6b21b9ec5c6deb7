"""Parquet files of a table, written by the workers, and manifests that describe them for the driver.

Each file has a unique name and is visible only once it is committed. Files from a failed or repeated task are
never committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from odradek_tables.schemas import Table

if TYPE_CHECKING:
    import pyarrow.dataset as ds

ROW_GROUP_ROWS = 1 << 20
PLAIN = ("value",)
"""Columns without a dictionary: their values repeat little."""
MOST_GROWING = 64
"""Limit of files of a table that a task has open; a backlog can span hundreds of hours."""
ARRIVED, SORTED, SETTLED = "part", "sorted", "settled"
"""Prefixes of file names: rows in the order of arrival, sorted, or never rewritten."""
DAY = re.compile(r"([a-z]+)-(\d{4}-\d{2}-\d{2})-")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file that is written but not committed yet."""

    table: str
    path: str
    """Relative to the table."""
    file_bytes: int
    rows: int
    partition: dict[str, str]
    stats: str
    """Statistics in Delta's format, JSON."""


def file_system(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of a local path, or of a URI that Arrow supports (``s3://``, ``gs://``, ``abfss://``)."""
    if "://" in root:
        found, path = fs.FileSystem.from_uri(root)
        return found, path
    return fs.LocalFileSystem(), root


def file_day(path: str, prefix: str) -> date | None:
    """The day in the name of a file with a prefix; None if it has none, or another prefix."""
    found = DAY.match(path.rpartition("/")[2])
    return date.fromisoformat(found[2]) if found is not None and found[1] == prefix else None


def arrow_files(root: str, table: Table, files: Sequence[str]) -> ds.Dataset:
    """Files of a table, given by their full paths, with the partition columns; missing columns are null.

    The dataset of `deltalake` itself is not used: if the log has no range for a column, it takes the column
    for null and skips rows in queries about it.
    """
    import pyarrow.dataset as ds  # it imports pandas, which takes a quarter of a second

    system, base = file_system(f"{root}/{table.name}")
    folders = pa.schema([table.schema.field(name) for name in table.partitions])
    return ds.dataset(
        [f"{base}/{each.rpartition(f'/{table.name}/')[2]}" for each in files],
        schema=table.schema,
        format="parquet",
        filesystem=system,
        partitioning=ds.partitioning(folders, flavor="hive"),
    )


def write_files(root: str, table: Table, rows: pa.RecordBatch | pa.Table) -> list[Manifest]:
    """Write rows, one file per partition.

    Raises:
        OSError: The store is full, or the dataset is not writable.
    """
    with TableFiles(root, table) as files:
        files.write(rows)
    return files.manifests


@dataclass(slots=True)
class TableFiles:
    """Open files of one table, one per partition; the end of ``with`` completes them.

    Beyond `MOST_GROWING` files, the least recently used one is completed; later rows of its partition go to
    another file. If an error leaves ``with``, the files are deleted.

    Raises:
        OSError: The store is full, or the dataset is not writable.
    """

    root: str
    table: Table
    prefix: str = ARRIVED
    manifests: list[Manifest] = field(default_factory=list)
    """The completed files."""
    growing: dict[tuple[str, ...], GrowingFile] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows, each to the file of its partition, in their order."""
        for partition, part in parts(self.table, rows):
            key = tuple(partition.values())
            file = self.growing.pop(key, None)
            if file is None:
                file = GrowingFile(self.root, self.table, partition, part.schema, self.prefix)
            self.growing[key] = file  # the first entry is the least recently used
            file.write(part)
            if len(self.growing) > MOST_GROWING:
                self.finish(next(iter(self.growing)))

    def finish(self, key: tuple[str, ...]) -> None:
        """Complete a file; later rows of its partition go to another."""
        file = self.growing[key]
        file.close()
        self.manifests.append(file.manifest())
        del self.growing[key]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with ExitStack() as closing:
                for each in self.growing.values():
                    closing.callback(each.close)
        except OSError:
            self.remove()
            raise
        if error is not None:
            self.remove()
            return
        self.manifests.extend(each.manifest() for each in self.growing.values())

    def remove(self) -> None:
        """Delete the files, which will never be committed: retries must not fill the store."""
        system, base = file_system(self.root)
        paths = [each.path for each in self.manifests] + [each.path for each in self.growing.values()]
        for path in paths:
            with suppress(OSError):
                system.delete_file(f"{base}/{self.table.name}/{path}")


class GrowingFile:
    """One Parquet file that is being written; each write is a row group."""

    def __init__(
        self, root: str, table: Table, partition: dict[str, str], schema: pa.Schema, prefix: str
    ) -> None:
        self.table = table
        self.partition = partition
        folder = "/".join(f"{name}={value}" for name, value in partition.items())
        self.path = f"{folder}/{prefix}-{uuid4()}.zstd.parquet"
        self.system, base = file_system(root)
        self.target = f"{base}/{table.name}/{self.path}"
        self.system.create_dir(self.target.rpartition("/")[0], recursive=True)
        self.names = table.file_schema.names
        self.rows = 0
        self.ranges: dict[str, tuple[Any, Any]] = {}
        self.nulls: dict[str, int] = {}
        self.writer = pq.ParquetWriter(
            self.target,
            pa.schema([schema.field(name) for name in self.names]),
            filesystem=self.system,
            compression="zstd",
            use_dictionary=[name for name in self.names if name not in PLAIN],
            coerce_timestamps="us",
            store_schema=False,
        )

    def write(self, rows: pa.Table) -> None:
        """Add rows of this partition."""
        self.writer.write_table(rows.select(self.names), row_group_size=ROW_GROUP_ROWS)
        self.rows += rows.num_rows
        for name in self.table.ranged:
            found = pc.min_max(rows[name]).as_py()
            self.nulls[name] = self.nulls.get(name, 0) + rows[name].null_count
            if found["min"] is not None:
                low, high = self.ranges.get(name, (found["min"], found["max"]))
                self.ranges[name] = min(low, found["min"]), max(high, found["max"])

    def close(self) -> None:
        self.writer.close()

    def manifest(self) -> Manifest:
        stats = {
            "numRecords": self.rows,
            "minValues": {name: delta_value(low, down=True) for name, (low, _) in self.ranges.items()},
            "maxValues": {name: delta_value(high, down=False) for name, (_, high) in self.ranges.items()},
            "nullCount": self.nulls,
        }
        size = self.system.get_file_info(self.target).size
        return Manifest(self.table.name, self.path, size, self.rows, self.partition, json.dumps(stats))


def parts(table: Table, rows: pa.RecordBatch | pa.Table) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """Split rows by partition, keeping their order."""
    whole = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if not whole.num_rows:
        return
    keys = whole.select(table.partitions)
    distinct = keys.unify_dictionaries().group_by(list(table.partitions)).aggregate([]).to_pylist()
    for key in distinct:
        partition = {name: str(key[name]) for name in table.partitions}
        if len(distinct) == 1:
            yield partition, whole
            return
        chosen = None
        for name in table.partitions:
            here = pc.equal(keys[name], pa.scalar(key[name], plain_type(keys[name].type)))
            chosen = here if chosen is None else pc.and_(chosen, here)
        yield partition, whole.filter(chosen)


def plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def delta_value(value: Any, *, down: bool) -> Any:
    """A bound in Delta's JSON; times are rounded outward to milliseconds."""
    if not isinstance(value, datetime):
        return value
    microseconds = round(value.timestamp() * 1_000_000)
    milliseconds = microseconds // 1000 if down else -(-microseconds // 1000)
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
