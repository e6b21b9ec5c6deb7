"""Dataset roots with unusual names: every reader finds the files, or the name is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_dataset import Push, ingested

from odradek.plugin import ConfigError, PluginConfig
from odradek_spark.companion import read_pipeline
from odradek_spark.ingest.query import check_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.load import live_files
from odradek_spark.sink.dataset_root import check_root
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import POINTS

PUSHES_OF_ONE = [Push(client=1, value=1.0)]


@pytest.mark.parametrize("name", ["with space", "umläut", "plus+&;", "quo'te", 'dq"t', "c:d", "tr/"])
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


MISREAD = {
    "q?": "?",
    "n#1": "#",
    "a%b": "%",
    "per%20cent": "%",
    "star*": "*",
    "br[ack]et": "[",
    "{cur,ly}": "{",
    "back\\slash": "\\",
    "line\nbreak": r"the control character '\n'",
    "bell\x07": r"the control character '\x07'",
}


@pytest.mark.parametrize("name", MISREAD)
def test_a_name_that_some_reader_misreads_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    settings = IngestSettings(bootstrap_servers="127.0.0.1:1", dataset=f"{tmp_path}/{name}/root")

    with pytest.raises(DatasetError) as refused:
        check_ingest(settings)

    assert str(refused.value).endswith(f"choose a name without {MISREAD[name]}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["dataset", "checkpoint"])
def test_a_host_refuses_such_a_name_at_its_start(key: str) -> None:
    config = PluginConfig("plugins.spark", {"dataset": "/tables", key: "/tables#1"})

    with pytest.raises(ConfigError, match=f"plugins.spark.{key}: .*choose one without #"):
        read_pipeline(config)


def test_a_checkpoint_has_the_same_rules(tmp_path: Path) -> None:
    settings = IngestSettings(
        bootstrap_servers="127.0.0.1:1", dataset=f"{tmp_path}/root", checkpoint=f"{tmp_path}/c?"
    )

    with pytest.raises(DatasetError, match=r"choose a name without \?"):
        check_ingest(settings)
