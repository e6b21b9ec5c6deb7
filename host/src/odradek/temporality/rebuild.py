"""Build totals again from the log: an empty file has a mark that asks for it, until the first commit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from odradek.bounds.path_kind import exists, is_file
from odradek.temporality.shape import BadState
from odradek.temporality.state_file import FILES, MARK, ForeignFile, StateFile, failures

OLD: Final = ".old"
NEW: Final = ".new"


def is_rebuilt(path: Path) -> bool:
    """Whether the file asks for the log from its beginning; False if the file cannot be read."""
    if not is_file(path):
        return False
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("select count(*) from sqlite_master where name = ?", (MARK,))
            return bool(found.fetchone()[0])
    except sqlite3.Error:
        return False  # the start of the forwarder reports it


def begin_again(path: Path) -> Path | None:
    """Set a file of totals aside, damaged or not, and leave an empty one with the mark.

    Returns:
        The file that was set aside, whose name ends with ``.old``; an earlier one is replaced. None if there
        was no file.

    Raises:
        ForeignFile: The file is another program's. It stays.
        StoreFailed: The file cannot be opened now.
        OSError: A file cannot be moved or created.
    """
    had_one = exists(path)
    if had_one:
        try:
            with closing(StateFile(path)) as file:
                file.open()
        except ForeignFile:
            raise
        except BadState:
            pass  # damaged, or newer: a reason to begin again
    fresh = path.with_name(path.name + NEW)
    fresh.unlink(missing_ok=True)
    with failures(), closing(StateFile(fresh)) as file:
        file.connection.execute(f"create table {MARK} (since integer)")
    old = path.with_name(path.name + OLD)
    for suffix in FILES:
        source, target = Path(f"{path}{suffix}"), Path(f"{old}{suffix}")
        target.unlink(missing_ok=True)
        if exists(source):
            source.replace(target)
    fresh.replace(path)
    return old if had_one else None
