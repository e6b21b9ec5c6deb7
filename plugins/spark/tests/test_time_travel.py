"""Earlier versions of a table, as the how-to reads them, also across a new column."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType
from telemetry_rows import Told, gauge, ingest_batches

from odradek_tables.dataset import Dataset
from odradek_tables.schemas import POINTS


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Two batches, a column of a newer version, and a third batch."""
    made = Dataset(str(tmp_path / "d"))
    end = ingest_batches(made, [[gauge(Told(30.0), 1.0)], [gauge(Told(60.0), 2.0)]])
    made.existing(POINTS).alter.add_columns([Field("newer", PrimitiveType("string"), nullable=True)])
    ingest_batches(made, [[gauge(Told(90.0), 3.0)]], end)
    return made.uri(POINTS)


@pytest.mark.parametrize(("version", "values"), [(0, []), (1, [1.0]), (2, [1.0, 2.0]), (4, [1.0, 2.0, 3.0])])
def test_each_reader_sees_the_rows_of_a_version(uri: str, version: int, values: list[float]) -> None:
    table = DeltaTable(uri, version=version)
    found = duckdb.from_arrow(table.to_pyarrow_dataset()).order("value").select("value").fetchall()

    assert sorted(table.to_pandas()["value"].tolist()) == values
    assert sorted(pl.scan_delta(uri, version=version).collect()["value"].to_list()) == values
    assert [value for (value,) in found] == values


def test_a_version_has_its_own_columns(uri: str) -> None:
    before, after = DeltaTable(uri, version=2), DeltaTable(uri)

    assert "newer" not in before.to_pyarrow_table().column_names
    assert after.to_pyarrow_table()["newer"].to_pylist() == [None, None, None]


def test_a_batch_is_found_by_its_time(uri: str) -> None:
    history = DeltaTable(uri).history()
    (first,) = (each for each in history if each.get("batch") == "0")

    assert (first["version"], first["pushes"]) == (1, "1")
