"""All logs of a host. Each is a folder ``<topic>-<partition>`` in one of several log directories.

After org.apache.kafka.storage.internals.log.LogManager. The caller holds the locks of the directories.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from odradek.clock import Clock
from odradek.log.log_config import LogConfig
from odradek.log.open_files import OpenFiles
from odradek.log.partition_log import FlushWanted, PartitionLog
from odradek.log.replica_move import (
    DELETED_SUFFIX,
    FUTURE_SUFFIX,
    MOVED_MARK,
    MoveThrottle,
    ReplicaMove,
    Unlimited,
    remove_tree,
)
from odradek.log.segment import storage_error
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import parse_uuid, uuid_text

log = logging.getLogger(__name__)

METADATA_FILE: Final = "partition.metadata"
"""Kafka's file with two lines, ``version: 0`` and ``topic_id: <base64url>``."""
_NAME_LENGTH: Final = 180
"""How much of a log's name a deleted folder keeps: with id and suffix it must fit into 255 characters."""
_LONGEST_NAME: Final = 255
_MAX_PREFERRED: Final = 10_000
"""The most directories that are remembered for partitions that do not exist: requests must not fill the
memory with them."""

Partition = tuple[str, int]


class LogManager:
    """The open logs. Folders of logs that are never opened stay as they are.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: a directory cannot be prepared.
    """

    def __init__(
        self,
        *directories: Path,
        now_ms: int,
        max_open_files: int = 512,
        throttle: MoveThrottle | None = None,
    ) -> None:
        self.directories = tuple(each.absolute() for each in directories)
        self.now_ms = now_ms
        """The time of the start, which counts as the creation time of loaded segments."""
        self.files = OpenFiles(max_open_files)
        self.moves: dict[Partition, ReplicaMove] = {}
        """Moves to another directory, by partition. The code that runs a move removes it at its end."""
        self.remove_tree = remove_tree
        """Deletes an abandoned folder. This may take long, so the server replaces it by a thread's work."""
        self.flush_wanted: FlushWanted | None = None
        """Called with a log and a time when its configuration requires a flush by that time."""
        self.move_begun: Callable[[Partition, ReplicaMove], None] | None = None
        """Called with each new move; must run its steps."""
        self.throttle = throttle or Unlimited()
        """The throttle of all moves between directories."""
        self._logs: dict[Partition, PartitionLog] = {}
        self._preferred: dict[Partition, Path] = {}
        self._unfinished: dict[str, Path] = {}
        for directory in self.directories:
            self._prepare_directory(directory)
        self._settle_moves()

    def _prepare_directory(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for leftover in directory.glob("*" + DELETED_SUFFIX):
                remove_tree(leftover)
            for copy in directory.glob("*" + FUTURE_SUFFIX):
                self._unfinished[copy.name.rpartition(".")[0]] = directory
                remove_tree(copy)
        except OSError as error:
            raise storage_error("make", directory, error) from error

    def _settle_moves(self) -> None:
        """Finish moves that a crash interrupted after the takeover: delete the older of two folders.

        The mark is in the copy, which is the newer one.
        """
        for directory in self.directories:
            for mark in directory.glob(f"*/{MOVED_MARK}"):
                for other in self.directories:
                    older = other / mark.parent.name
                    if other != directory and older.exists():
                        self._bury(older)
                mark.unlink()

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(tuple(self._logs.values()))

    def items(self) -> list[tuple[Partition, PartitionLog]]:
        """All open logs by topic and partition."""
        return list(self._logs.items())

    def log(self, topic: str, partition: int) -> PartitionLog | None:
        """The open log of a partition, or None."""
        return self._logs.get((topic, partition))

    def open(
        self,
        topic: str,
        partition: int,
        config: LogConfig,
        topic_id: bytes = NIL_UUID,
        now_ms: int | None = None,
    ) -> PartitionLog:
        """Open the log of a partition: recover it from its folder, or create an empty one.

        Args:
            topic: A legal name, see ``org.apache.kafka.common.internals.Topic``.
            partition: Its index.
            config: If the log is open already, replaces its configuration.
            topic_id: If given, a folder with another topic id is deleted first: an earlier topic of the same
                name left it behind.
            now_ms: Defaults to the time of the start.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        known = self._logs.get((topic, partition))
        if known is not None:
            known.config = config
            return known
        folder = self._directory_of(topic, partition) / f"{topic}-{partition}"
        try:
            self._prepare(folder, topic_id)
        except OSError as error:
            raise storage_error("create", folder, error) from error
        opened = PartitionLog(folder, config, self.now_ms if now_ms is None else now_ms, self.files)
        opened.flush_wanted = self._ask_for_flush
        self._logs[topic, partition] = opened
        return opened

    def _ask_for_flush(self, asking: PartitionLog, due_ms: int) -> None:
        if self.flush_wanted is not None:
            self.flush_wanted(asking, due_ms)
        elif asking.must_flush:
            asking.flush()

    def _directory_of(self, topic: str, partition: int) -> Path:
        """The directory of an existing log, else the requested one, else the one with the fewest logs."""
        found = [each for each in self.directories if (each / f"{topic}-{partition}").exists()]
        if len(found) > 1:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic}-{partition} is in {found[0]} and {found[1]}: keep one of the folders",
            )
        preferred = self._preferred.pop((topic, partition), None)
        if found or preferred:
            return found[0] if found else preferred or self.directories[0]
        if len(self.directories) == 1:
            return self.directories[0]  # counting takes time in proportion to all logs
        counts = Counter(each.directory.parent for each in self)
        return min(self.directories, key=counts.__getitem__)

    def _prepare(self, folder: Path, topic_id: bytes) -> None:
        if folder.exists() and topic_id != NIL_UUID and _topic_id(folder) not in (topic_id, NIL_UUID):
            log.warning(
                "deleting the folder of an earlier topic of the same name", extra={"folder": str(folder)}
            )
            self._bury(folder)
        folder.mkdir(exist_ok=True)
        if topic_id != NIL_UUID:
            _write_topic_id(folder, topic_id)

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log. Its folder is renamed first, so that a crash leaves either all of it or nothing.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self._cancel_move((topic, partition))
        deleted = self._logs.pop((topic, partition), None)
        folders = [each / f"{topic}-{partition}" for each in self.directories]
        try:
            for folder in [deleted.directory] if deleted is not None else folders:
                if folder.exists():
                    self._bury(folder)
        except OSError as error:
            raise storage_error("delete", folder, error) from error
        finally:
            if deleted is not None:
                deleted.deleted()

    def _bury(self, folder: Path) -> None:
        text = uuid_text(_topic_id(folder))
        number = 0
        while True:
            grave = folder.with_name(f"{folder.name[:_NAME_LENGTH]}.{text}.{number}{DELETED_SUFFIX}")
            if not grave.exists():
                break
            number += 1
        os.rename(folder, grave)
        self.remove_tree(grave)  # the next start removes what is left

    # Moving

    def move(self, topic: str, partition: int, directory: Path, clock: Clock) -> ReplicaMove | None:
        """Start to move a log; None if there is nothing to do now.

        A partition that does not exist yet will be created in ``directory``.

        Raises:
            ApiError: LOG_DIR_NOT_FOUND, INVALID_TOPIC_EXCEPTION.
        """
        if directory not in self.directories:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{directory} is not one of log.dirs")
        key = topic, partition
        moving = self._logs.get(key)
        if moving is None:
            self._preferred[key] = directory
            if len(self._preferred) > _MAX_PREFERRED:
                del self._preferred[next(iter(self._preferred))]
            return None
        unique_id = _topic_id(moving.directory).hex()
        if len(f"{moving.name}.{unique_id}{FUTURE_SUFFIX}") > _LONGEST_NAME:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic name is too long")
        going = self.moves.get(key)
        if going is not None and going.directory == directory:
            return going
        self._cancel_move(key)
        if moving.directory.parent == directory:
            return None
        move = ReplicaMove(
            moving, directory, unique_id, clock, self.files, lambda: self.throttle, self._remove_later
        )
        self.moves[key] = move
        if self.move_begun is not None:
            self.move_begun(key, move)
        return move

    def _remove_later(self, folder: Path) -> None:
        self.remove_tree(folder)

    def _cancel_move(self, key: Partition) -> None:
        move = self.moves.pop(key, None)
        if move is not None:
            move.cancel()

    def resume_moves(self, clock: Clock) -> None:
        """Restart the moves that a stop or a crash has interrupted."""
        for (topic, partition), each in self.items():
            directory = self._unfinished.pop(each.name, None)
            if directory is not None:
                self.move(topic, partition, directory, clock)

    # All logs

    def flush(self) -> None:
        """Flush all logs. Blocks.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, from the first log that fails.
        """
        for each in self:
            each.flush()

    def close(self) -> None:
        """Close all logs, so that the next start is quick. If one fails, close the others nevertheless."""
        for move in self.moves.values():
            move.close()
        for each in self:
            try:
                each.close()
            except ApiError as error:
                log.warning(
                    "cannot close a log: the next start recovers it",
                    extra={"log": each.name, "problem": str(error)},
                )
        self._logs.clear()


def _topic_id(folder: Path) -> bytes:
    """The topic id stored in a folder; nil if there is none."""
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
