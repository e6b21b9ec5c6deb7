"""What may stand in the place of a file that a program reads again and again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

NO_FILES = ("a pipe", "a socket", "a device", "a folder")


def no_file(kind: str, path: Path) -> Path:
    """Put something that is no file at a path, and return the path that has it."""
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    return path
