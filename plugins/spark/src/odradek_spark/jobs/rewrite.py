"""Rewrites files of earlier versions in the encodings of today, which every reader knows."""

from __future__ import annotations

from collections import defaultdict

import pyarrow.parquet as pq

from odradek_spark.jobs.compact import check_columns, merged
from odradek_tables.dataset import JOB, Dataset
from odradek_tables.files import file_system
from odradek_tables.log import LiveFile, live
from odradek_tables.schemas import POINTS

OLD = "BYTE_STREAM_SPLIT"
"""The encoding of ``value`` in earlier versions: Spark before 4.3 and fastparquet cannot decode it."""


def run_rewrite(root: str) -> int:
    """Rewrite the files of ``points`` that have the old encoding, one commit for each folder. Needs no Spark.

    A folder that another job changes meanwhile is left to the next run.

    Returns:
        The number of files that were replaced.

    Raises:
        DatasetError: The table does not exist, or has columns of a newer version.
    """
    dataset = Dataset(root)
    check_columns(dataset, POINTS)
    folders: dict[tuple[str, ...], list[LiveFile]] = defaultdict(list)
    for each in live(dataset.existing(POINTS)):
        if is_old(f"{dataset.uri(POINTS)}/{each.path}"):
            folders[tuple(each.partition.values())].append(each)
    done = 0
    for files in folders.values():
        new = merged(dataset.root, POINTS, files)
        if dataset.exchange(POINTS, files, new, {JOB: "rewrite"}, data_change=False):
            done += len(files)
    return done


def is_old(path: str) -> bool:
    system, place = file_system(path)
    with pq.ParquetFile(place, filesystem=system) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    return any(OLD in group.column(at).encodings for group in groups for at in range(group.num_columns))
