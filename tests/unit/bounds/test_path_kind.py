"""Whether a path is there: a disk that fails does not say no."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.bounds.path_kind import exists, is_file
from support.failing_disk import FailingDisk, disk

__all__ = ["disk"]


def test_files_folders_and_nothing_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    assert (exists(file), is_file(file)) == (True, True)
    assert (exists(tmp_path), is_file(tmp_path)) == (True, False)
    assert (exists(tmp_path / "lost"), is_file(tmp_path / "lost")) == (False, False)
    assert (exists(file / "below"), is_file(file / "below")) == (False, False)


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")

    assert not exists(tmp_path / "link")
    (tmp_path / "file").touch()
    assert is_file(tmp_path / "link")


@pytest.mark.parametrize("asked", [exists, is_file])
def test_a_disk_that_fails_raises(asked: Callable[[Path], bool], tmp_path: Path, disk: FailingDisk) -> None:
    file = tmp_path / "file"
    file.touch()
    disk.fail(tmp_path)

    with pytest.raises(OSError, match="Input/output"):
        asked(file)
