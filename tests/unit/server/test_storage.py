from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.server.storage import METADATA_FILE, Storage


def test_what_was_stored_is_there_again(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0)
    first.metadata.put_value("key", "value")
    first.close()

    second = Storage(tmp_path, 0)

    assert second.metadata.value("key") == "value"
    second.close()


@pytest.mark.parametrize("damage", ["not a database", "a newer version", "a folder"])
def test_a_metadata_file_that_is_not_ours_is_refused_and_nothing_stays_open(
    tmp_path: Path, damage: str
) -> None:
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


def test_a_log_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")

    with pytest.raises(ConfigError, match=r"data\.dir"):
        Storage(tmp_path, 0)
