"""Whether a path is there, in the same way on every Python.

From Python 3.14 on, `Path.exists` and `Path.is_file` say False of a disk that fails, as if the file had never
been written.
"""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG


def mode(path: Path) -> int | None:
    """Return the type and permissions of a file or folder; None if there is nothing.

    Raises:
        OSError: The disk does not answer, or a folder on the way may not be searched.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def exists(path: Path) -> bool:
    """Whether there is a file or a folder.

    Raises:
        OSError: As `mode`.
    """
    return mode(path) is not None


def is_file(path: Path) -> bool:
    """Whether there is a regular file.

    Raises:
        OSError: As `mode`.
    """
    found = mode(path)
    return found is not None and S_ISREG(found)
