"""The columns with statistics: filters on other columns find their rows, also in tables of older versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from spark_dataset import LATENCY, Push, commit_ranges, ingested, record

from odradek_tables import dataset as dataset_module
from odradek_tables.dataset import COLUMNS, FIRST, Dataset, statistics_properties
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.schemas import BY_NAME, POINTS, PUSHES, Table

PUSHED = [Push(client=client, value=float(client), at_s=client) for client in (1, 1, 2)]


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A dataset of a version that did not name the columns."""
    monkeypatch.setattr(dataset_module, "statistics_properties", lambda table: {})
    monkeypatch.setattr(dataset_module, "upgrade", lambda current, table: False)
    made = ingested(str(tmp_path / "d"), PUSHED)
    monkeypatch.undo()
    return made


def more(dataset: Dataset) -> bool:
    """Commit one more push."""
    rows = Decoder().decode([record(Push(client=1, value=4.0), len(PUSHED))]).points
    offset = len(PUSHED)
    files = write_files(dataset.root, POINTS, rows)
    return commit_ranges(dataset, POINTS, files, {0: (offset, offset + 1)})


def of_client_1(table: DeltaTable) -> list[int]:
    """The number of points of a client, by three ways to filter."""
    filters = [("client_id", "=", "client-1")]
    condition = ds.field("client_id") == "client-1"
    return [
        len(table.to_pandas(filters=filters)),
        table.to_pyarrow_table(filters=filters).num_rows,
        table.to_pyarrow_dataset().to_table(filter=condition).num_rows,
    ]


def test_a_filter_on_a_column_without_statistics_finds_its_rows(tmp_path: Path) -> None:
    dataset = ingested(str(tmp_path / "d"), PUSHED)

    found = of_client_1(dataset.existing(POINTS))

    assert found == [2, 2, 2]


def test_a_filter_on_a_column_with_statistics_skips_files(tmp_path: Path) -> None:
    dataset = ingested(str(tmp_path / "d"), PUSHED)
    more(dataset)
    whole = dataset.existing(POINTS).to_pyarrow_dataset()

    files = list(whole.get_fragments(ds.field("src_offset") >= len(PUSHED)))

    assert (len(files), len(list(whole.get_fragments()))) == (1, 2)


def test_a_table_of_an_older_version_is_upgraded_by_the_next_commit(older: Dataset) -> None:
    before = older.existing(POINTS)
    assert COLUMNS not in before.metadata().configuration
    assert of_client_1(before) == [0, 0, 0]

    committed = more(older)

    after = older.existing(POINTS)
    assert committed
    assert after.metadata().configuration[COLUMNS] == "recv_ts,ts,src_offset"
    assert of_client_1(after) == [3, 3, 3]
    assert not more(older)
    assert older.existing(POINTS).version() == after.version()


@pytest.mark.parametrize("name", BY_NAME)
def test_each_table_names_its_columns(tmp_path: Path, name: str) -> None:
    dataset, table = Dataset(str(tmp_path)), BY_NAME[name]

    dataset.create([table])

    named = dataset.existing(table).metadata().configuration
    assert statistics_properties(table).items() <= named.items()
    assert (COLUMNS in named) is (FIRST not in named)


def test_two_writers_upgrade_at_once_and_neither_commits_twice(
    older: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one commits between the look at the table and its upgrade."""
    upgrade = dataset_module.upgrade
    others: list[bool] = []

    def late(current: DeltaTable, table: Table) -> bool:
        if not others:
            others.append(False)
            others[0] = more(older)
        return upgrade(current, table)

    monkeypatch.setattr(dataset_module, "upgrade", late)

    committed = more(older)

    assert (others, committed) == ([True], False)
    assert older.existing(POINTS).to_pyarrow_table().num_rows == len(PUSHED) + 1
    assert {row["name"] for row in older.existing(POINTS).to_pyarrow_table().to_pylist()} == {LATENCY}
    assert older.existing(PUSHES).version() == 1
