"""Finds the rows of a range of the topic that the tables lack; each task does it for its own range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from odradek_spark.source.offsets import OffsetRange
from odradek_tables.dataset import Dataset
from odradek_tables.following import erased_ranges
from odradek_tables.schemas import BY_NAME, DEAD_LETTER, PUSHES

PARTITION, OFFSET, INDEX = "src_partition", "src_offset", "src_idx"
INDEX_BITS = 32


class Absent:
    """Drops rows of a range that a table has, or that were erased; a push does not become a dead letter.

    ``kept_from`` has the first day that a table keeps. Earlier rows have expired, and the jobs that follow
    the table have processed them.
    """

    def __init__(self, dataset: Dataset, found: OffsetRange, kept_from: Mapping[str, str]) -> None:
        self.dataset, self.found, self.kept_from = dataset, found, kept_from
        self.known: dict[str, NDArray[np.int64]] = {}
        self.erased = [
            (start, end)
            for partition, start, end in erased_ranges(dataset)
            if partition == found.partition and start < found.end and end > found.start
        ]

    def __call__(self, table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, of those that were decoded again, that a table lacks."""
        if table not in self.known:
            self.known[table] = self.keys_of(table)
        is_new = pa.array(~np.isin(packed(rows, self.found.start), self.known[table]))
        is_kept = pc.greater_equal(rows["date"].cast(pa.string()), self.kept_from.get(table, ""))
        wanted = pc.and_(is_new, is_kept)
        for start, end in self.erased:
            offset = rows[OFFSET]
            outside = pc.or_(pc.less(offset, start), pc.greater_equal(offset, end))
            wanted = pc.and_(wanted, outside)
        return rows.filter(wanted)

    def keys_of(self, table: str) -> NDArray[np.int64]:
        """The keys of the range that a table has; files that cannot have any are skipped."""
        # Filter by offset only: each file has its range, while deltalake takes a column without one for null.
        near = (pc.field(OFFSET) >= self.found.start) & (pc.field(OFFSET) < self.found.end)
        names = [table] if table != DEAD_LETTER.name else [table, PUSHES.name]
        keys = []
        for name in names:
            columns = [each for each in (PARTITION, OFFSET, INDEX) if each in BY_NAME[name].schema.names]
            files = self.dataset.existing(BY_NAME[name]).to_pyarrow_dataset()
            rows = files.to_table(columns=columns, filter=near)
            there = rows.filter(pc.field(PARTITION) == self.found.partition)
            keys.append(packed(there, self.found.start))
        return np.concatenate(keys)


def packed(rows: pa.RecordBatch | pa.Table, start: int) -> NDArray[np.int64]:
    """The offset relative to ``start``, and the index in the push if the rows have one, as one number."""
    offsets: NDArray[np.int64] = rows[OFFSET].to_numpy(zero_copy_only=False) - start
    keys = offsets << INDEX_BITS
    if INDEX in rows.schema.names:
        keys += rows[INDEX].to_numpy(zero_copy_only=False)
    return keys
