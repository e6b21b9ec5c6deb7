"""The contents of a dataset, read without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_topics import TOPIC

from odradek_spark.ingest.settings import IngestSettings
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import BY_NAME

SOURCE = ["src_partition", "src_offset"]


def settings(bootstrap: str, dataset: Path, **more: Any) -> IngestSettings:
    """Settings to ingest the tests' topic."""
    return IngestSettings(bootstrap_servers=bootstrap, dataset=str(dataset), topic=TOPIC, **more)


def rows(root: Path, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of a table, sorted."""
    found = Dataset(str(root)).existing(BY_NAME[table]).to_pyarrow_table(columns=list(columns))
    return sorted(zip(*(found[name].to_pylist() for name in columns), strict=True))


def offsets(root: Path, table: str = "pushes") -> list[tuple[Any, ...]]:
    """The partitions and offsets of the rows; each occurs once if each was ingested once."""
    return rows(root, table, *SOURCE)


def every(count: int, partitions: int = 1) -> list[tuple[int, int]]:
    """The offsets of this many records, spread over the partitions."""
    return sorted((number % partitions, number // partitions) for number in range(count))


def is_exactly(root: Path, expected: list[tuple[int, int]], points: int = 3) -> bool:
    """Whether the dataset has each of these records once, with all its points."""
    wanted = sorted((*each, index) for each in expected for index in range(points))
    return offsets(root) == expected and rows(root, "points", *SOURCE, "src_idx") == wanted


def until(true: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Wait for a condition."""
    end_s = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end_s, "in vain"
        time.sleep(0.1)
