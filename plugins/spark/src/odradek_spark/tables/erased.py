"""Removals by erasures: records of the topic, and files with their successors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.log import AddedFile, Version
from odradek_spark.tables.schemas import ERASURES

ERASED_FILES = "erasedFiles"
"""Key in the history of a table: by erased file its successor and the number of its rows, or null."""


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


def with_successors(files: Sequence[AddedFile], found: Iterable[Version]) -> list[AddedFile]:
    """The files, each erased one replaced by its successor; in the order of the versions."""
    current = list(files)
    for version in found:
        successors = json.loads(version.info.get(ERASED_FILES) or "{}")
        if successors:
            current = [new for each in current if (new := successor(each, successors)) is not None]
    return current


def successor(file: AddedFile, successors: dict[str, tuple[str, int] | None]) -> AddedFile | None:
    if file.path not in successors:
        return file
    found = successors[file.path]
    return None if found is None else replace(file, path=found[0], rows=found[1])
