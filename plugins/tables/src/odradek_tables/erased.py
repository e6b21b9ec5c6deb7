"""The records of the topic that were erased on request."""

from __future__ import annotations

import json

from odradek_tables.dataset import Dataset
from odradek_tables.schemas import ERASURES


def erased_ranges(dataset: Dataset) -> list[tuple[int, int, int]]:
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
