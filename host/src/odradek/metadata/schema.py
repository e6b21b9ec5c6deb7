"""The versions of the metadata file's tables, and the way from each version to the next.

A release that changes the stored data in a way that older releases would misread adds a step. Tables that
other stores add (``create table if not exists``) need none: older releases ignore them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from odradek import __version__
from odradek.bounds.path_kind import is_file

STEPS: Final[tuple[str, ...]] = (
    """
    create table host (key text primary key, value text not null) without rowid;
    create table topics (
        name text primary key, id blob not null unique, partitions integer not null
    ) without rowid;
    create table configs (
        resource_type integer not null, resource_name text not null, key text not null, value text not null,
        primary key (resource_type, resource_name, key)
    ) without rowid;
    """,
)
"""SQL that turns version N into version N + 1. Version 0 is an empty file."""
SCHEMA_VERSION: Final = len(STEPS)
BACKUP_ADVICE: Final = (
    "start the release that wrote it, or restore a backup of the whole data directory from before the upgrade"
)


def version_of(connection: sqlite3.Connection) -> int:
    """The version of an open file.

    Raises:
        sqlite3.DatabaseError: The file cannot be read.
    """
    return int(connection.execute("pragma user_version").fetchone()[0])


def version_in(path: Path) -> int | None:
    """The version of a file; None if there is no file, or it cannot be read as a database."""
    if not is_file(path):
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            return version_of(connection)
    except sqlite3.Error:
        return None


def refusal(version: int, supported: int = SCHEMA_VERSION) -> str | None:
    """Why this release cannot use a file of this version; None if it can."""
    if version <= supported:
        return None
    return (
        f"has version {version} of the metadata format, but odradek {__version__} supports versions up to"
        f" {supported}: {BACKUP_ADVICE}"
    )


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = STEPS) -> None:
    """Bring an open file to the newest version; call it in a transaction.

    Raises:
        sqlite3.DatabaseError: A step failed.
    """
    for step in steps[version_of(connection) :]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"pragma user_version = {len(steps)}")
