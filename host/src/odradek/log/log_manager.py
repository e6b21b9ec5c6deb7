"""All logs of a data directory: a folder ``<topic>-<partition>`` for each.

After org.apache.kafka.storage.internals.log.LogManager, for one directory. The caller holds the directory's
lock.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from odradek.log.log_config import LogConfig
from odradek.log.open_files import OpenFiles
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import storage_error
from odradek.wire.api_error import ApiError
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import parse_uuid, uuid_text

log = logging.getLogger(__name__)

DELETED_SUFFIX: Final = "-delete"
METADATA_FILE: Final = "partition.metadata"
"""Kafka's: two lines, ``version: 0`` and ``topic_id: <base64url>``."""
_NAME_LENGTH: Final = 180
"""Of a topic, in the name of a deleted folder: with id and suffix it must fit into 255 characters."""


class LogManager:
    """The open logs. Folders of topics that nobody opens are left alone.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: the directory cannot be made.
    """

    def __init__(self, directory: Path, *, now_ms: int, max_open_files: int = 512) -> None:
        self.directory = directory
        self.now_ms = now_ms
        """Of the start: the age of segments that are loaded."""
        self.files = OpenFiles(max_open_files)
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error("make", directory, error) from error
        for leftover in directory.glob("*" + DELETED_SUFFIX):
            shutil.rmtree(leftover, ignore_errors=True)

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self._logs.values()))

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """An open log."""
        return self._logs.get((topic, partition))

    def open(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        topic_id: bytes = NIL_UUID,
        now_ms: int | None = None,
    ) -> PartitionLog:
        """The log of a partition: recovered if it is there, else empty.

        Args:
            topic: A legal name, see ``org.apache.kafka.common.internals.Topic``.
            partition: Its index.
            config: Replaces the configuration of a log that is open already.
            topic_id: If given, a folder that an earlier topic of the same name left behind is not taken for
                this one: it is deleted.
            now_ms: Default is the time of the start.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        known = self._logs.get((topic, partition))
        if known is not None:
            known.config = config
            return known
        folder = self.directory / f"{topic}-{partition}"
        try:
            self._prepare(folder, topic_id)
        except OSError as error:
            raise storage_error("create", folder, error) from error
        opened = PartitionLog(folder, config, self.now_ms if now_ms is None else now_ms, self.files)
        self._logs[topic, partition] = opened
        return opened

    def _prepare(self, folder: Path, topic_id: bytes) -> None:
        if folder.exists() and topic_id != NIL_UUID and _topic_id(folder) not in (topic_id, NIL_UUID):
            log.warning("deleting the folder of an earlier topic", extra={"folder": str(folder)})
            self._remove(folder)
        folder.mkdir(exist_ok=True)
        if topic_id != NIL_UUID:
            _write_topic_id(folder, topic_id)

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log. It is renamed first, so that a crash leaves either all of it or nothing.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        deleted = self._logs.pop((topic, partition), None)
        try:
            self._remove(self.directory / f"{topic}-{partition}")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error("delete", self.directory / f"{topic}-{partition}", error) from error
        if deleted is not None:
            deleted.deleted()

    def _remove(self, folder: Path) -> None:
        text = uuid_text(_topic_id(folder))
        number = 0
        while True:
            grave = folder.with_name(f"{folder.name[:_NAME_LENGTH]}.{text}.{number}{DELETED_SUFFIX}")
            if not grave.exists():
                break
            number += 1
        os.rename(folder, grave)
        shutil.rmtree(grave, ignore_errors=True)  # what is left goes at the next start

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been silent for ``producer.id.expiration.ms``."""
        for each in self:
            each.producers.expire(now_ms)

    def flush(self) -> None:
        """Force everything to the disk. Blocks.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, of the first log that fails.
        """
        for each in self:
            each.flush()

    def close(self) -> None:
        """Close all logs, so that the next start is quick. One that fails does not keep the others open."""
        for each in self:
            try:
                each.close()
            except ApiError as error:
                log.warning("cannot close a log", extra={"log": each.name, "problem": str(error)})
        self._logs.clear()


def _topic_id(folder: Path) -> bytes:
    """Nil where the folder does not say."""
    try:
        text = (folder / METADATA_FILE).read_text()
        return parse_uuid(text.partition("topic_id:")[2].strip())
    except (OSError, ValueError):
        return NIL_UUID


def _write_topic_id(folder: Path, topic_id: bytes) -> None:
    path = folder / METADATA_FILE
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
