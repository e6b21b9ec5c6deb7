"""Find damage in a metadata file before anything is written to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from odradek.bounds.path_kind import exists, is_file
from odradek.metadata.failure import in_one_line
from odradek.metadata.store import CLUSTER_ID

COMPANIONS = ("", "-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps for one database."""
NEVER_USED = "was never used by a host"
READABLE = partial(str, encoding="utf-8", errors="replace")


def loss(path: Path) -> str | None:
    """Why the file cannot have the topics of a host: it is missing, empty, or no host has started with it.
    None if it may have them.
    """
    if not os.path.lexists(path):
        return "is missing"
    if is_file(path) and not path.stat().st_size:
        return "is empty"
    try:
        with closing(sqlite3.connect(path)) as connection:
            if not connection.execute("select count(*) from sqlite_master").fetchone()[0]:
                return "is empty"
            started = connection.execute("select 1 from host where key = ?", (CLUSTER_ID,)).fetchone()
    except sqlite3.Error:
        return None
    return None if started else NEVER_USED


def damage(path: Path) -> str | None:
    """How the file is damaged, in SQLite's words; None if it is intact, missing, or cannot be read now."""
    if not is_file(path):
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.text_factory = READABLE  # the report quotes the names of columns
            (found,) = connection.execute("pragma quick_check(1)").fetchone()
    except UnicodeDecodeError as error:  # from the text of SQLite's error
        return f"its schema has bytes that are not UTF-8: {error.reason}"
    except sqlite3.DatabaseError as error:
        is_damage = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        return in_one_line(error) if is_damage else None
    return None if found == "ok" else in_one_line(found)


def set_aside(path: Path, suffix: str) -> list[Path]:
    """Rename a metadata file and its companions, as far as they exist; return the new paths.

    Raises:
        OSError: A file cannot be renamed.
    """
    renamed = []
    for companion in COMPANIONS:
        old, new = Path(f"{path}{companion}"), Path(f"{path}{suffix}{companion}")
        if exists(old):
            old.rename(new)
            renamed.append(new)
    return renamed
