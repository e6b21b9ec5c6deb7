"""A dataset to which a newer version added a column: it can be read and written, and the column is kept."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from deltalake.schema import Field, PrimitiveType
from spark_dataset import Push, commit_ranges, ingested, record

from odradek_spark.jobs.compact import check_columns
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import POINTS, PUSHES


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = ingested(str(tmp_path / "d"), [Push(client=1, value=1.0)])
    made.existing(POINTS).alter.add_columns([Field("newer", PrimitiveType("string"), nullable=True)])
    return made


def test_ingest_and_queries_continue(dataset: Dataset) -> None:
    points = Decoder().decode([record(Push(client=2, value=2.0), 1)]).points

    commit_ranges(dataset, POINTS, write_files(dataset.root, POINTS, points), {0: (1, 2)})

    with closing(Reader(dataset.root)) as reader:
        asked = reader.ask("SELECT client_id, value FROM points ORDER BY value").to_pylist()
    assert asked == [{"client_id": "client-1", "value": 1.0}, {"client_id": "client-2", "value": 2.0}]
    whole = dataset.existing(POINTS).to_pyarrow_table()
    assert whole["newer"].to_pylist() == [None, None]


def test_compaction_keeps_the_column(dataset: Dataset) -> None:
    check_columns(dataset, PUSHES)

    with pytest.raises(
        DatasetError, match=r"points has columns of a newer version \(newer\).*update odradek-spark"
    ):
        check_columns(dataset, POINTS)
