"""Which rows of a range of the topic the tables do not have: asked by a task for its own range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from odradek_spark.source.offsets import OffsetRange
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import BY_NAME, DEAD_LETTER, PUSHES

PARTITION, OFFSET, INDEX = "src_partition", "src_offset", "src_idx"
INDEX_BITS = 32


class Absent:
    """Takes the rows out that a table has; what is a push is no dead letter either.

    Args:
        dataset: Whose tables they are, as they are now.
        found: The records; rows of others are not known.
        kept_from: By table, the first day that it keeps. Rows of days before were taken out, and those who
            follow the table have had them.
    """

    def __init__(self, dataset: Dataset, found: OffsetRange, kept_from: Mapping[str, str]) -> None:
        self.dataset, self.found, self.kept_from = dataset, found, kept_from
        self.known: dict[str, NDArray[np.int64]] = {}

    def __call__(self, table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, decoded again, that a table does not have."""
        if table not in self.known:
            self.known[table] = self.keys_of(table)
        is_new = pa.array(~np.isin(packed(rows, self.found.start), self.known[table]))
        is_kept = pc.greater_equal(rows["date"].cast(pa.string()), self.kept_from.get(table, ""))
        return rows.filter(pc.and_(is_new, is_kept))

    def keys_of(self, table: str) -> NDArray[np.int64]:
        """What a table has of the range; files that cannot have any are passed over."""
        # by the offset alone: its range is known of each file, and deltalake takes a column without for null
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
    """The offset behind the first one, and the place in the push if the rows have one, as one number."""
    offsets: NDArray[np.int64] = rows[OFFSET].to_numpy(zero_copy_only=False) - start
    keys = offsets << INDEX_BITS
    if INDEX in rows.schema.names:
        keys += rows[INDEX].to_numpy(zero_copy_only=False)
    return keys
