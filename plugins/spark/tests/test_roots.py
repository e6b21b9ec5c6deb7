"""Dataset roots with unusual names: every reader finds the files, or the name is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_dataset import Push, ingested

from odradek_spark.ingest.dataset_root import check_root
from odradek_spark.query.reader import Reader
from odradek_spark.tables.dataset import Dataset, DatasetError
from odradek_spark.tables.load import live_files
from odradek_spark.tables.schemas import POINTS

PUSHES_OF_ONE = [Push(client=1, value=1.0)]


@pytest.mark.parametrize(
    "name", ["with space", "a%b", "n#1", "umläut", "plus+&;", "quo'te", 'dq"t', "c:d", "tr/"]
)
def test_files_are_found_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    root = f"{tmp_path}/{name}"

    check_root(root)
    dataset = ingested(root, PUSHES_OF_ONE)
    reader = Reader(root)
    counted = reader.ask("select count(*) as n from points").to_pylist()
    reader.close()

    check_root(root)
    assert [Path(each).exists() for each in live_files(dataset, POINTS)] == [True]
    assert counted == [{"n": 1}]


def test_a_root_can_be_relative_or_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ingested("./here", PUSHES_OF_ONE)

    found = [live_files(Dataset(root), POINTS) for root in ("here", "./here/", (tmp_path / "here").as_uri())]

    assert found[0] == found[1] == found[2]
    assert [Path(each).exists() for each in found[0]] == [True]


@pytest.mark.parametrize("name", ["q?", "star*", "br[ack]et", "{cur,ly}", "back\\slash", "per%20cent"])
def test_a_name_that_some_readers_treat_as_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="choose a name without"):
        check_root(f"{tmp_path}/{name}")
