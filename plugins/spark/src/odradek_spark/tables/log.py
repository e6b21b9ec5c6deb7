"""Reads the log of a table: its files, and the changes of each version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import fs

from odradek_spark.tables.files import file_system


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of the current version of a table."""

    path: str
    """Relative to the table."""
    file_bytes: int
    rows: int
    partition: Mapping[str, str]
    recv_min: datetime | None = None
    """The earliest receive time in it, where that is a column."""
    recv_max: datetime | None = None
    """And the latest."""


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file with new rows that a version added, unlike files that only replace others."""

    path: str
    rows: int
    partition: Mapping[str, str]
    recv_min: datetime | None
    """The earliest receive time in it, where that is a column."""
    recv_max: datetime | None = None
    """And the latest."""


@dataclass(frozen=True, slots=True)
class Version:
    """The changes of one commit."""

    number: int
    added: tuple[AddedFile, ...]
    numbers: Mapping[str, int]
    """The numbers of applications; see `odradek_spark.tables.dataset`."""
    info: Mapping[str, Any]
    """The writer's entries for the history, as text."""


class LogGone(Exception):
    """The log no longer has a version of a table; the message says which."""


def live(table: DeltaTable) -> list[LiveFile]:
    """The files of a table, in the order of their names."""
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    found = [
        LiveFile(
            path=row["path"],
            file_bytes=row["size_bytes"],
            rows=row["num_records"],
            partition={
                name.removeprefix("partition."): str(value)
                for name, value in row.items()
                if name.startswith("partition.")
            },
            recv_min=row.get("min.recv_ts"),
            recv_max=row.get("max.recv_ts"),
        )
        for row in rows
    ]
    return sorted(found, key=lambda each: each.path)


def file_paths(table: DeltaTable, folders: Sequence[tuple[str, str, str]] = ()) -> list[str]:
    """The full paths of the files of a table.

    Args:
        table: The table.
        folders: Conditions on the partition columns, in the format of ``deltalake``.
    """
    found = table.file_uris(file_pruning_predicate=list(folders) or None)
    return [each if "://" in each else unquote(each) for each in found]


def versions(uri: str, after: int, until: int) -> Iterator[Version]:
    """The commits of a table after one version, up to and including another.

    Raises:
        LogGone: The log does not go back that far.
    """
    system, base = file_system(uri)
    for number in range(after + 1, until + 1):
        yield version(system, base, number)


def first_version(uri: str) -> int:
    """The oldest commit that the log still has; older ones are only in its checkpoints."""
    system, base = file_system(uri)
    names = [info.base_name for info in system.get_file_info(fs.FileSelector(f"{base}/_delta_log"))]
    return min(int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit())


def version(system: fs.FileSystem, base: str, number: int) -> Version:
    """Read one commit.

    Raises:
        LogGone: The log no longer has it.
    """
    try:
        with system.open_input_stream(f"{base}/_delta_log/{number:020d}.json") as stream:
            actions = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
    except FileNotFoundError as error:
        raise LogGone(f"{base}: version {number} is no longer in the log") from error
    return Version(
        number=number,
        added=tuple(
            added(action["add"]) for action in actions if "add" in action and action["add"]["dataChange"]
        ),
        numbers={
            action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action
        },
        info=next((action["commitInfo"] for action in actions if "commitInfo" in action), {}),
    )


def added(action: Mapping[str, Any]) -> AddedFile:
    stats = json.loads(action.get("stats") or "{}")
    return AddedFile(
        path=action["path"],
        rows=int(stats.get("numRecords", 0)),
        partition={name: str(value) for name, value in action["partitionValues"].items()},
        recv_min=log_time(stats.get("minValues", {}).get("recv_ts")),
        recv_max=log_time(stats.get("maxValues", {}).get("recv_ts")),
    )


def log_time(text: str | None) -> datetime | None:
    """Parse a time of Delta's JSON."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
