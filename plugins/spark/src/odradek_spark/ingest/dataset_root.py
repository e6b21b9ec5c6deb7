"""Whether a folder is one that ingest may write into."""

from __future__ import annotations

import re

from pyarrow import fs

from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.files import file_system
from odradek_spark.tables.schemas import BY_NAME, INGESTED, SOURCE

OURS = frozenset(BY_NAME)
PATTERN = re.compile(r"[*?\[\]{}\\]|%[0-9A-Fa-f]{2}")
"""What some reader of paths takes for something else: Spark for a pattern, ``deltalake`` for a character."""
NAMED = 3
"""Entries of a foreign folder that a message lists."""


def check_root(root: str) -> None:
    """See that a root is empty, not there yet, or a dataset.

    Raises:
        DatasetError: It is something else, or cannot be looked at; or not every reader would find it.
    """
    odd = PATTERN.search(root)
    if odd is not None:
        raise DatasetError(
            f"{root}: not every reader finds a folder of that name: take a name without {odd[0]}"
        )
    try:
        system, base = file_system(root)
        info = system.get_file_info(base)
        if info.type is fs.FileType.File:
            raise DatasetError(f"{root}: a file; the dataset needs a folder")
        if info.type is fs.FileType.Directory:
            found = [each.base_name for each in system.get_file_info(fs.FileSelector(base))]
            check_entries(root, [name for name in found if not name.startswith(("_", "."))])
    except (OSError, ValueError) as error:
        raise DatasetError(f"{root}: cannot be read: {error}") from error
    check_tables(root)


def check_entries(root: str, names: list[str]) -> None:
    """A folder with other things in it and no table is somebody else's."""
    foreign = sorted(set(names) - OURS)
    if foreign and not OURS & set(names):
        listed = ", ".join(foreign[:NAMED]) + (" ..." if len(foreign) > NAMED else "")
        raise DatasetError(f"{root} holds something else ({listed}): take an empty folder")


def check_tables(root: str) -> None:
    """A table of the same name without our columns is somebody else's, too."""
    for table in INGESTED:
        found = Dataset(root).open(table)
        if found is None:
            continue
        columns = {field.name for field in found.schema().fields}
        missing = sorted({field.name for field in SOURCE} - columns)
        if missing:
            raise DatasetError(
                f"{root}/{table.name} is a table with other columns (no {', '.join(missing)}): "
                "take an empty folder"
            )
