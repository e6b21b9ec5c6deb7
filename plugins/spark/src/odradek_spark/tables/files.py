"""Parquet files of a table, written where the rows are; what is known of them travels as manifests.

A file has a name of its own and counts only once it is committed: what a task writes that fails, or runs
twice, is never seen by a reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from odradek_spark.tables.schemas import Table

ROW_GROUP_ROWS = 1 << 20
RANGED = ("recv_ts", "ts", "src_offset")
"""Columns whose range is kept for each file, so that readers can pass files over."""
SPLIT_DOUBLES = ("value",)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file that is written and not committed yet."""

    table: str
    path: str
    """Relative to the table."""
    file_bytes: int
    rows: int
    partition: dict[str, str]
    stats: str
    """As Delta keeps them: JSON."""

    def text(self) -> str:
        """The manifest as a row that Spark carries."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """What `text` wrote."""
        return cls(**json.loads(text))


def file_system(root: str) -> tuple[fs.FileSystem, str]:
    """Where a dataset is: a local path, or a URI that Arrow knows (``s3://``, ``gs://``, ``abfss://``)."""
    if "://" in root:
        found, path = fs.FileSystem.from_uri(root)
        return found, path
    return fs.LocalFileSystem(), root


def write_files(root: str, table: Table, rows: pa.RecordBatch | pa.Table) -> list[Manifest]:
    """Write rows, one file for each partition they belong to.

    Raises:
        OSError: There is no room, or the dataset cannot be written.
    """
    return [
        write_file(root, table, partition, part) for partition, part in parts(table, rows) if part.num_rows
    ]


def write_file(root: str, table: Table, partition: dict[str, str], rows: pa.Table) -> Manifest:
    """Write the rows of one partition, without the columns that are folders."""
    system, base = file_system(root)
    folder = "/".join(f"{name}={value}" for name, value in partition.items())
    path = f"{folder}/part-{uuid4()}.zstd.parquet"
    rows = rows.select(table.file_schema.names)
    target = f"{base}/{table.name}/{path}"
    system.create_dir(target.rpartition("/")[0], recursive=True)
    with system.open_output_stream(target) as stream:
        pq.write_table(
            rows,
            stream,
            compression="zstd",
            row_group_size=ROW_GROUP_ROWS,
            use_dictionary=[name for name in rows.column_names if name not in SPLIT_DOUBLES],
            column_encoding={
                name: "BYTE_STREAM_SPLIT" for name in SPLIT_DOUBLES if name in rows.column_names
            },
            coerce_timestamps="us",
            store_schema=False,
        )
    size = system.get_file_info(target).size
    return Manifest(table.name, path, size, rows.num_rows, partition, json.dumps(statistics(rows)))


def parts(table: Table, rows: pa.RecordBatch | pa.Table) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """The rows by partition, each in the order they came."""
    whole = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if not whole.num_rows:
        return
    keys = whole.select(table.partitions).unify_dictionaries()
    distinct = keys.group_by(list(table.partitions)).aggregate([]).to_pylist()
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


def statistics(rows: pa.Table) -> dict[str, Any]:
    """Number of rows and the ranges, as Delta writes them."""
    ranges = {name: pc.min_max(rows[name]).as_py() for name in RANGED if name in rows.column_names}
    known = {name: found for name, found in ranges.items() if found["min"] is not None}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: delta_value(found["min"], down=True) for name, found in known.items()},
        "maxValues": {name: delta_value(found["max"], down=False) for name, found in known.items()},
        "nullCount": {name: rows[name].null_count for name in known},
    }


def delta_value(value: Any, *, down: bool) -> Any:
    """A bound as Delta's JSON has it: times in whole milliseconds, outward."""
    if not isinstance(value, datetime):
        return value
    microseconds = round(value.timestamp() * 1_000_000)
    milliseconds = microseconds // 1000 if down else -(-microseconds // 1000)
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
