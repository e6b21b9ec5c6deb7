"""Writes rows of a job as files of a table, in the Python workers; the files are not committed yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import DataFrame

from odradek_tables.files import ARRIVED, Manifest, TableFiles
from odradek_tables.schemas import Table

GROUP_ROWS = 1 << 17
"""Rows of a row group: Spark passes fewer at a time, and small row groups are slow to read."""


def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches into tables of about `GROUP_ROWS` rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def write_frame(rows: DataFrame, root: str, table: Table, prefix: str = ARRIVED) -> list[Manifest]:
    """Write rows with the columns of a table, in any order, as one or more files for each folder and task."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TableFiles(root, table, prefix) as files:
            for group in groups(batches):
                files.write(group.cast(table.schema))
        yield pa.record_batch({"files": [json.dumps([asdict(each) for each in files.manifests])]})

    found = rows.select(*table.schema.names).mapInArrow(write, "files string").collect()
    return [Manifest(**file) for row in found for file in json.loads(row["files"])]
