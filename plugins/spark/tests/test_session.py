"""Errors before Spark starts: about Java, and about the folder of the dataset."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek_spark.ingest.session import NoSpark, archive_path, check_java, jvm_options
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.sink.dataset_root import check_root
from odradek_spark.tables.dataset import Dataset, DatasetError


def fake_java(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a ``java`` on the path that prints this version."""
    command = folder / "java"
    command.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    command.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")


def test_missing_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoSpark, match="no Java found: the pipeline needs Java 17 or newer"):
        check_java()


def test_a_java_home_without_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(NoSpark, match=f"JAVA_HOME is {tmp_path}, but it has no bin/java: correct it"):
        check_java()


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ('java version "1.8.0_392"', "is Java 8, but the pipeline needs 17 or newer"),
        ('openjdk version "11.0.21" 2023-10-17', "is Java 11, but the pipeline needs 17 or newer"),
        ("Error: could not find libjava.so", "is Java of unknown version, but the pipeline needs 17"),
    ],
)
def test_java_that_is_too_old_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, problem: str
) -> None:
    fake_java(tmp_path, version, monkeypatch)

    with pytest.raises(NoSpark, match=problem):
        check_java()


def test_a_suitable_java_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "21.0.1" 2023-10-17', monkeypatch)

    version = check_java()

    assert version == 21


def test_java_that_cannot_be_started_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "", monkeypatch)
    (tmp_path / "java").write_text("#!/nowhere\n")

    with pytest.raises(NoSpark, match="java cannot be started: No such file"):
        check_java()


def test_an_archive_is_used_once_it_exists(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"

    first = jvm_options(archive)
    archive.touch()
    second = jvm_options(archive)

    assert f"-XX:ArchiveClassesAtExit={archive}" in first
    assert f"-XX:SharedArchiveFile={archive}" in second
    assert "jsa" not in jvm_options(None)


def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fake_java(tmp_path, 'openjdk version "17.0.1"', monkeypatch)
    first = archive_path()
    again = archive_path()
    os.utime(tmp_path / "java", (1, 1))
    upgraded = archive_path()
    (tmp_path / "java").unlink()
    absent = archive_path()

    assert first == again
    assert first.is_relative_to(tmp_path)
    assert len({first, upgraded, absent}) == 3


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
