from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.upkeep.data_dir import DataDir


def test_a_directory_is_created_and_can_be_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    DataDir(folder).close()
    DataDir(folder).close()

    assert folder.is_dir()


def test_a_second_host_in_the_directory_is_refused(tmp_path: Path) -> None:
    first = DataDir(tmp_path)

    with pytest.raises(ConfigError, match="in use by another process"):
        DataDir(tmp_path)

    first.close()


def test_a_file_at_its_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(ConfigError, match=r"data\.dir: .* cannot be used"):
        DataDir(tmp_path / "data")


def test_a_new_directory_is_removed_if_it_is_abandoned(tmp_path: Path) -> None:
    DataDir(tmp_path / "new").abandon()

    assert not (tmp_path / "new").exists()


def test_an_older_directory_and_one_with_files_stay(tmp_path: Path) -> None:
    (tmp_path / "older").mkdir()
    used = DataDir(tmp_path / "used")
    (tmp_path / "used" / "file").touch()

    DataDir(tmp_path / "older").abandon()
    used.abandon()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["older", "used"]
    DataDir(tmp_path / "used").close()


def test_only_the_owner_can_read_a_new_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "data"

    DataDir(folder).close()

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".lock").stat().st_mode & 0o777 == 0o600
    assert caplog.records == []


def test_a_directory_that_others_can_read_stays_so_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)

    DataDir(folder).close()

    assert folder.stat().st_mode & 0o777 == 0o755
    assert [vars(record)["mode"] for record in caplog.records] == ["0755"]
