from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError
from odradek.server.upkeep.storage import METADATA_FILE, Storage
from support.batches import NOW_MS, batch_of


def test_stored_data_survives_a_restart(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0)
    first.metadata.put_value("key", "value")
    first.close()

    second = Storage(tmp_path, 0)

    assert second.metadata.value("key") == "value"
    second.close()


@pytest.mark.parametrize("damage", ["not a database", "a newer version", "a folder"])
def test_a_foreign_metadata_file_is_refused_and_no_file_stays_open(tmp_path: Path, damage: str) -> None:
    path = tmp_path / METADATA_FILE
    if damage == "a folder":
        path.mkdir()
    elif damage == "not a database":
        path.write_bytes(b"something else entirely" * 100)
    else:
        connection = sqlite3.connect(path)
        connection.execute("pragma user_version = 99")
        connection.close()

    with pytest.raises(ConfigError, match=METADATA_FILE):
        Storage(tmp_path, 0)

    path.rmdir() if path.is_dir() else path.unlink()
    Storage(tmp_path, 0).close()


def test_logs_are_in_log_dirs(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    assert storage.logs.directories == (tmp_path / "one", tmp_path / "two")
    assert not (tmp_path / "data" / "logs").exists()
    storage.close()


def test_the_metadata_may_be_in_a_directory_of_logs(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0, [tmp_path])
    first.metadata.put_value("key", "value")
    log = first.logs.open("t", 0, LogConfig(), bytes(15) + b"1", 0)
    log.append(batch_of(b"x"), now_ms=NOW_MS)
    first.close()

    second = Storage(tmp_path, 0, [tmp_path])

    assert second.metadata.value("key") == "value"
    assert second.logs.open("t", 0, LogConfig(), bytes(15) + b"1", 0).log_end_offset == 1
    second.close()


def test_a_directory_belongs_to_one_host(tmp_path: Path) -> None:
    first = Storage(tmp_path / "data", 0, [tmp_path / "one"])

    with pytest.raises(ConfigError, match=r"log\.dirs: .*one is in use"):
        Storage(tmp_path / "other", 0, [tmp_path / "two", tmp_path / "one"])

    first.close()
    Storage(tmp_path / "other", 0, [tmp_path / "two", tmp_path / "one"]).close()


def test_a_repeated_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "one")

    with pytest.raises(ConfigError, match=r"log\.dirs"):
        Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "link"])


def test_the_data_directory_can_contain_logs_itself(tmp_path: Path) -> None:
    storage = Storage(tmp_path, 0, [tmp_path])

    assert storage.logs.directories == (tmp_path,)
    storage.close()


def test_a_log_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")

    with pytest.raises(ConfigError, match=r"data\.dir"):
        Storage(tmp_path, 0)
