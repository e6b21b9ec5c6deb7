"""Rewrites rows of the table of anomalies without Spark: an open episode is a row, not a fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.files import write_files
from odradek_spark.tables.load import file_rows
from odradek_spark.tables.log import LiveFile
from odradek_spark.tables.schemas import ANOMALIES


def rows_of(dataset: Dataset, files: Sequence[LiveFile]) -> list[dict[str, Any]]:
    """The rows of files of the table; columns that older files lack are None."""
    uri = dataset.uri(ANOMALIES)
    return [
        row
        for each in files
        for rows in file_rows(ANOMALIES, f"{uri}/{each.path}")
        for row in rows.to_pylist()
    ]


def rewritten(
    dataset: Dataset,
    rows: Sequence[dict[str, Any]],
    changed: Sequence[dict[str, Any]],
    files: Sequence[LiveFile],
    info: Mapping[str, Any],
) -> bool:
    """Commit changed rows: write the days of these rows again.

    Args:
        dataset: The dataset.
        rows: All rows of the files, with the changes.
        changed: Those that changed; at least one.
        files: The files.
        info: Entries for the history of the table.

    Returns:
        False if another run changed the files meanwhile.
    """
    days = {each["date"] for each in changed}
    table = pa.Table.from_pylist([each for each in rows if each["date"] in days], schema=ANOMALIES.schema)
    manifests = write_files(dataset.root, ANOMALIES, table)
    replaced = [each for each in files if each.partition["date"] in days]
    return dataset.exchange(ANOMALIES, replaced, manifests, info, data_change=True)
