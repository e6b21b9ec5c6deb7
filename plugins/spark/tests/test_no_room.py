"""A dataset on a full disk: errors report it, and nothing partial is visible or left behind."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from spark_dataset import Push, commit_ranges, ingested, record

from odradek_spark.ingest.failures import Failure, explain
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.schemas import POINTS

MORE = {0: (1, 501)}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return ingested(str(tmp_path / "d"), [Push(client=1, value=1.0)])


@contextmanager
def no_file_beyond(size_bytes: int) -> Iterator[None]:
    """The system refuses to let a file grow: as on a full disk, the bytes before that are written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def points() -> pa.RecordBatch:
    return Decoder().decode([record(Push(client=1, value=at / 7), at) for at in range(1, 501)]).points


def files(dataset: Dataset) -> set[Path]:
    return set(Path(dataset.root).rglob("*.*"))


def test_a_truncated_file_is_an_error_and_is_removed(dataset: Dataset) -> None:
    before = files(dataset)

    with no_file_beyond(2_000), pytest.raises(OSError, match="File too large"):
        write_files(dataset.root, POINTS, points())

    assert files(dataset) == before


def test_a_commit_that_does_not_fit_fails_and_can_be_repeated(dataset: Dataset) -> None:
    written = write_files(dataset.root, POINTS, points())

    with no_file_beyond(100), pytest.raises(OSError, match="File too large") as refused:
        commit_ranges(dataset, POINTS, written, MORE)
    seen = dataset.existing(POINTS).to_pyarrow_table().num_rows
    again = commit_ranges(dataset, POINTS, written, MORE)

    told = f"Return Message: Traceback\n  File x\nOSError: {refused.value}"
    assert explain(RuntimeError(told), "c") == Failure(
        "OSError: Generic LocalFileSystem error: Unable to copy data to file: File too large (os error 27)",
        True,
    )
    assert (seen, again) == (1, True)
    assert dataset.existing(POINTS).to_pyarrow_table().num_rows == 501
