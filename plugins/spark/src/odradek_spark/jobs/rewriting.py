"""Reads and rewrites rows of the table of anomalies without Spark: an open episode is a row, not a fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from odradek_spark.jobs.islands import OPEN
from odradek_tables.dataset import Dataset
from odradek_tables.files import Manifest, arrow_files, write_files
from odradek_tables.log import LiveFile
from odradek_tables.schemas import ANOMALIES

EPISODE: Final = ("rule", "client_instance_id", "name", "attrs", "started_ts")
"""The key of an episode."""
IS_OPEN: Final = pc.field("state") == OPEN
Row = dict[str, Any]


def key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in EPISODE)


def rows_of(dataset: Dataset, files: Sequence[LiveFile], wanted: pc.Expression | None = None) -> list[Row]:
    """The rows of files of the table that match a condition; columns that older files lack are None."""
    uri = dataset.uri(ANOMALIES)
    found = arrow_files(dataset.root, ANOMALIES, [f"{uri}/{each.path}" for each in files])
    rows: list[Row] = found.to_table(filter=wanted).to_pylist()
    return rows


def written(
    dataset: Dataset, changed: Sequence[Row], files: Sequence[LiveFile]
) -> tuple[list[Manifest], list[LiveFile]]:
    """Write the days of new and changed rows again; changed ones replace rows with the same key.

    Returns:
        The new files, which are not committed yet, and those of the table's files that they replace.
    """
    days = {each["date"] for each in changed}
    replaced = [each for each in files if each.partition["date"] in days]
    rows = {key(each): each for each in (*rows_of(dataset, replaced), *changed)}
    table = pa.Table.from_pylist(list(rows.values()), schema=ANOMALIES.schema)
    return (write_files(dataset.root, ANOMALIES, table) if rows else []), replaced


def rewritten(
    dataset: Dataset, changed: Sequence[Row], files: Sequence[LiveFile], info: Mapping[str, Any]
) -> bool:
    """Commit changed rows as `written` writes them; False if another run changed the files meanwhile."""
    manifests, replaced = written(dataset, changed, files)
    return dataset.exchange(ANOMALIES, replaced, manifests, info, data_change=True)
