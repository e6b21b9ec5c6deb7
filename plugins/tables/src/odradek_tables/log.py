"""Reads the log of a table: its files, and the changes of each version."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import fs

from odradek_tables.files import file_system

CLOCK_SKEW_MAX = timedelta(minutes=15)
"""Largest difference between ``ts`` and the receive time, by which tables are partitioned; the decoder's
default."""

SOURCE_RANGES: Final = "sourceRanges"
"""Key in the history of a table: by partition, the first offset of a batch and its end offset (last + 1)."""
OffsetSpan = tuple[int, int, int]
"""Partition, first offset, end offset (last + 1)."""
OF_FILES = ("path", "size_bytes", "num_records", "min.recv_ts", "max.recv_ts")
"""Columns of a table's add actions that `live` needs; there are two more for each column of the table."""


@dataclass(frozen=True, slots=True)
class LiveFile:
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
class Version:
    """The changes of one commit."""

    number: int
    added: tuple[LiveFile, ...]
    """The files with new rows, unlike files that only replace others."""
    numbers: Mapping[str, int]
    """The numbers of applications; see `odradek_tables.dataset`."""
    info: Mapping[str, Any]
    """The writer's entries for the history, as text."""


class LogGone(Exception):
    """The log no longer has a version of a table; the message says which."""


def live(table: DeltaTable) -> list[LiveFile]:
    """The files of a table, in the order of their names."""
    files = pa.table(table.get_add_actions(flatten=True))
    needed = [name for name in files.schema.names if name in OF_FILES or name.startswith("partition.")]
    rows = files.select(needed).to_pylist()
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


def paths_between(
    table: DeltaTable, column: str, since: datetime | None = None, until: datetime | None = None
) -> list[str]:
    """The full paths of the files of a table that may have rows of a time range, in order.

    Files are skipped by their day, and by their ranges of the column if they have any. Times have a time
    zone; None is open.
    """
    files = pa.table(table.get_add_actions(flatten=True))
    if since is not None:
        first_day = f"{(since - CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"
        files = kept(files, f"max.{column}", pc.greater_equal, since)
        files = kept(files, "partition.date", pc.greater_equal, first_day)
    if until is not None:
        last_day = f"{(until + CLOCK_SKEW_MAX).astimezone(UTC):%Y-%m-%d}"
        files = kept(files, f"min.{column}", pc.less_equal, until)
        files = kept(files, "partition.date", pc.less_equal, last_day)
    return full_paths(table, files)


def paths_of(table: DeltaTable, spans: Sequence[OffsetSpan]) -> list[str]:
    """The full paths of the files that may have rows of records."""
    if not spans:
        return []
    files = pa.table(table.get_add_actions(flatten=True))
    files = kept(files, "max.src_offset", pc.greater_equal, min(start for _, start, _ in spans))
    return full_paths(table, kept(files, "min.src_offset", pc.less, max(end for _, _, end in spans)))


def full_paths(table: DeltaTable, files: pa.Table) -> list[str]:
    uri = table.table_uri
    base = unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
    return sorted(f"{base.rstrip('/')}/{each}" for each in files["path"].to_pylist())


def kept(files: pa.Table, column: str, compare: Callable[..., Any], bound: datetime | str | int) -> pa.Table:
    """The files whose value in a column compares so with a bound, or is unknown."""
    if column not in files.schema.names:
        return files
    found = files[column]
    return files.filter(pc.fill_null(compare(found, pa.scalar(bound, found.type)), True))


def first_version(uri: str) -> int:
    """The oldest commit that the log still has; older ones are only in its checkpoints."""
    system, base = file_system(uri)
    names = [info.base_name for info in system.get_file_info(fs.FileSelector(f"{base}/_delta_log"))]
    return min(int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit())


def version(uri: str, number: int) -> Version:
    """One commit of a table.

    Raises:
        LogGone: The log does not go back that far.
    """
    system, base = file_system(uri)
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


def added(action: Mapping[str, Any]) -> LiveFile:
    stats = json.loads(action.get("stats") or "{}")
    return LiveFile(
        path=action["path"],
        file_bytes=action["size"],
        rows=int(stats.get("numRecords", 0)),
        partition={name: str(value) for name, value in action["partitionValues"].items()},
        recv_min=log_time(stats.get("minValues", {}).get("recv_ts")),
        recv_max=log_time(stats.get("maxValues", {}).get("recv_ts")),
    )


def log_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
