"""Folders ``<topic>-<partition>`` in a log directory, and the file in which each stores its topic's id.

After org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile and the directory names of
org.apache.kafka.storage.internals.log.UnifiedLog.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from odradek.bounds.path_kind import exists
from odradek.log.private_file import write_private
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import parse_uuid, uuid_text

log = logging.getLogger(__name__)

METADATA_FILE: Final = "partition.metadata"
"""Kafka's file with two lines, ``version: 0`` and ``topic_id: <base64url>``."""
STRAY_SUFFIX: Final = "-stray"
"""Ends the name of a folder that was set aside (UnifiedLog.STRAY_DIR_SUFFIX in Kafka)."""
WAY_BACK: Final = (
    "create the topic if it does not exist; stop the host; replace the folder of the partition by this one, "
    f"without its {METADATA_FILE}; start the host"
)
LONGEST_NAME: Final = 255
_NAME: Final = re.compile(r"([a-zA-Z0-9._-]+)-(0|[1-9][0-9]{0,8})")
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")
_FIRST_SEGMENT: Final = f"{0:020d}.log"

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """A folder of a partition, whether or not the host knows its topic."""

    topic: str
    index: int
    path: Path


def partition_of(name: str) -> Partition | None:
    """Topic and partition in the name of a folder; None if it is not the name of a partition's folder."""
    found = _NAME.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def partition_folders(directory: Path) -> Iterator[PartitionFolder]:
    """The folders of partitions in a directory, by name. Folders of other programs are left out.

    Raises:
        OSError: The directory cannot be read.
    """
    for name in sorted(_names(directory)):
        partition = partition_of(name)
        path = directory / name
        if partition is not None and (exists(path / METADATA_FILE) or any(_segments(path))):
            yield PartitionFolder(*partition, path)


def has_segments(folder: Path) -> bool:
    """Whether the folder exists and holds a segment, which may be empty."""
    return any(".log" in name for name in _names(folder))


def was_used(folder: Path) -> bool:
    """Whether the folder holds records, or offsets of earlier records.

    Raises:
        OSError: The folder cannot be read.
    """
    return any(each.name != _FIRST_SEGMENT or each.stat().st_size for each in _segments(folder))


def last_segment(folder: Path) -> tuple[int, int]:
    """Base offset and size of the last segment; -1 and 0 without a segment.

    Raises:
        OSError: The folder cannot be read.
    """
    last = max(_segments(folder), default=None)
    return (-1, 0) if last is None else (int(last.stem), last.stat().st_size)


def _segments(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _names(folder) if _SEGMENT.fullmatch(name))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def topic_id_of(folder: Path) -> bytes | None:
    """The topic id stored in a folder: nil if no id was stored, None if the file has something else.

    An empty file counts as no id: a power failure leaves one, and it contradicts nothing.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        text = (folder / METADATA_FILE).read_text()
        return parse_uuid(text.partition("topic_id:")[2].strip()) if text else NIL_UUID
    except FileNotFoundError:
        return NIL_UUID
    except ValueError:
        return None


def write_topic_id(folder: Path, topic_id: bytes) -> None:
    """Store the topic id of a folder, atomically.

    Raises:
        OSError: The file is unchanged.
    """
    draft = folder / f"{METADATA_FILE}.tmp"
    write_private(draft, f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode())
    os.replace(draft, folder / METADATA_FILE)


def set_aside(folder: Path, partition: Partition, why: str, now_ms: int) -> None:
    """Rename a folder as Kafka renames a stray partition, so that nothing opens or deletes it.

    Args:
        folder: The folder.
        partition: Its partition.
        why: A clause for the log.
        now_ms: The time, for a unique name.

    Raises:
        OSError: The folder still has its old name.
    """
    topic, index = partition
    number = 0
    while True:
        unique_id = uuid5(NAMESPACE_URL, f"{folder}?{now_ms}#{number}").hex
        suffix = f"-{index}.{unique_id}{STRAY_SUFFIX}"
        stray = folder.with_name(topic[: LONGEST_NAME - len(suffix)] + suffix)
        if not exists(stray):
            break
        number += 1
    os.rename(folder, stray)
    log.error(
        "set the folder of a partition aside",
        extra={"why": why, "folder": str(folder), "set_aside": str(stray), "way_back": WAY_BACK},
    )
