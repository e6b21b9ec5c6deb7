"""Errors before Spark starts: about Java, settings, and the folder of the dataset."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from odradek_spark.cli.session import NoSpark, check_java, settings
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.sink.dataset_root import check_root
from odradek_tables.dataset import Dataset, DatasetError


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_missing_java_is_reported(home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoSpark, match="no Java found: the pipeline needs Java 17 or newer"):
        check_java()


def test_a_java_that_can_be_started_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    command.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    check_java()


def test_a_setting_without_a_value_is_refused() -> None:
    assert settings(("spark.executor.memory=3g", "a=b=c")) == {"spark.executor.memory": "3g", "a": "b=c"}
    with pytest.raises(click.UsageError, match=r"--conf: expected KEY=VALUE, found 'spark\.executor"):
        settings(("spark.executor.memory",))


def test_a_root_that_is_empty_new_or_a_dataset_is_accepted(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    check_root(str(dataset))
    dataset.mkdir()
    (dataset / "_checkpoints").mkdir()
    check_root(str(dataset))
    Dataset(str(dataset)).create()

    check_root(str(dataset))


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.touch()

    with pytest.raises(DatasetError, match="file is a file, but the dataset needs a folder"):
        check_root(str(root))


def test_a_root_with_other_contents_is_refused(tmp_path: Path) -> None:
    for name in ("Documents", "Music", "Pictures", "Videos"):
        (tmp_path / name).mkdir()

    with pytest.raises(
        DatasetError,
        match=r"is not a dataset, it holds Documents, Music, Pictures \.\.\.: choose an empty folder",
    ):
        check_root(str(tmp_path))


def test_a_foreign_table_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "points"), pa.table({"x": [1]}))

    with pytest.raises(DatasetError, match=r"points is a table with other columns \(no src_offset"):
        check_root(str(tmp_path))


def test_a_root_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(DatasetError, match="/proc/nothing/points: cannot be created"):
        Dataset("/proc/nothing").create()


def test_the_checkpoint_is_in_the_dataset_by_default() -> None:
    inside = IngestSettings(bootstrap_servers="b:1", dataset="/data/")
    outside = IngestSettings(bootstrap_servers="b:1", dataset="/data", checkpoint="/notes")

    places = inside.checkpoint_location, outside.checkpoint_location

    assert places == ("/data/_checkpoints/ingest", "/notes")
