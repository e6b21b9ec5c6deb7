"""Checks that ingest may write into a folder."""

from __future__ import annotations

from deltalake import DeltaTable
from pyarrow import fs

from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.files import file_system
from odradek_tables.folder_names import misread_character
from odradek_tables.schemas import BY_NAME, INGESTED, SOURCE, Table

OURS = frozenset(BY_NAME)
NAMED = 3
"""Limit of entries that the message about a foreign folder lists."""


def check_root(root: str) -> None:
    """Check that a root is missing, empty or a dataset.

    Raises:
        DatasetError: The root is something else or unreadable, or some readers cannot open a path like that.
    """
    check_name(root)
    try:
        system, base = file_system(root)
        info = system.get_file_info(base)
        if info.type is fs.FileType.File:
            raise DatasetError(f"{root} is a file, but the dataset needs a folder: choose another path")
        if info.type is fs.FileType.Directory:
            found = [each.base_name for each in system.get_file_info(fs.FileSelector(base))]
            check_entries(root, [name for name in found if not name.startswith(("_", "."))])
    except (OSError, ValueError) as error:
        raise DatasetError(f"{root}: cannot be read: {error}") from error
    check_tables(root)


def check_new_root(root: str, table: Table) -> None:
    """Check a root that may not have a table yet; one that has it was checked before."""
    if not DeltaTable.is_deltatable(Dataset(root).uri(table)):
        check_root(root)


def check_name(path: str) -> None:
    odd = misread_character(path)
    if odd is not None:
        shown = path if path.isprintable() else ascii(path)
        raise DatasetError(
            f"{shown}: some readers cannot open a folder of that name: choose a name without {odd}"
        )


def check_entries(root: str, names: list[str]) -> None:
    """Refuse a folder that has other entries and no table."""
    foreign = sorted(set(names) - OURS)
    if foreign and not OURS & set(names):
        listed = ", ".join(foreign[:NAMED]) + (" ..." if len(foreign) > NAMED else "")
        raise DatasetError(f"{root} is not a dataset, it holds {listed}: choose an empty folder")


def check_tables(root: str) -> None:
    """Refuse tables of the same names that lack columns of this pipeline."""
    for table in INGESTED:
        found = Dataset(root).open(table)
        if found is None:
            continue
        columns = {field.name for field in found.schema().fields}
        missing = sorted({field.name for field in SOURCE} - columns)
        if missing:
            raise DatasetError(
                f"{root}/{table.name} is a table with other columns (no {', '.join(missing)}): "
                "choose an empty folder"
            )
