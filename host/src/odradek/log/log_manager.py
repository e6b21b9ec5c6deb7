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
from odradek.log.partition_folder import (
    LONGEST_NAME,
    METADATA_FILE,
    Partition,
    has_segments,
    partition_folders,
    partition_of,
    set_aside,
    topic_id_of,
    was_used,
    write_topic_id,
)
from odradek.log.partition_log import FlushWanted, PartitionLog
from odradek.log.producer_ids import ProducerIds
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
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

_NAME_LENGTH: Final = 180
"""How much of a log's name a deleted folder keeps: with id and suffix it must fit into 255 characters."""
_MAX_PREFERRED: Final = 10_000
"""The most directories that are remembered for partitions that do not exist: requests must not fill the
memory with them."""


class LogManager:
    """The open logs.

    A folder that may hold records is deleted only with its topic. One that does not belong to the partition
    of its name is renamed to ``<topic>-<partition>.<uuid>-stray``.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: a directory cannot be prepared.
    """

    def __init__(
        self,
        *directories: Path,
        now_ms: int,
        max_open_files: int = 512,
        throttle: MoveThrottle | None = None,
        producer_ids: ProducerIds | None = None,
    ) -> None:
        self.directories = tuple(each.absolute() for each in directories)
        self.now_ms = now_ms
        """The time of the start, which counts as the creation time of loaded segments."""
        self.files = OpenFiles(max_open_files)
        self.producer_ids = producer_ids or ProducerIds()
        """Shared by all logs."""
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
                self._settle_copy(copy)
        except OSError as error:
            raise storage_error("make", directory, error) from error

    def _settle_copy(self, copy: Path) -> None:
        """Delete the unfinished copy of a moving log, unless it is all that is left of the log."""
        name = copy.name.rpartition(".")[0]
        partition = partition_of(name)
        if partition is None or any((each / name).exists() for each in self.directories):
            self._unfinished[name] = copy.parent
            remove_tree(copy)
        else:
            self._discard(copy, partition, "it is the unfinished copy of a partition that is in no directory")

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
        *,
        exists: bool = False,
    ) -> PartitionLog:
        """Open the log of a partition: recover it from its folder, or create an empty one.

        Args:
            topic: A legal name, see ``org.apache.kafka.common.internals.Topic``.
            partition: Its index.
            config: If the log is open already, replaces its configuration.
            topic_id: If given, a folder with another topic id is set aside first.
            now_ms: Defaults to the time of the start.
            exists: The log was created before: log an error if its files are missing.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        known = self._logs.get((topic, partition))
        if known is not None:
            known.config = config
            return known
        folder = self._directory_of(topic, partition) / f"{topic}-{partition}"
        if exists and not has_segments(folder):
            log.error(
                "a partition starts empty: its folder is missing or has no segments",
                extra={
                    "folder": str(folder),
                    "way_back": "stop the host; restore the folder; start the host",
                },
            )
        try:
            self._prepare(folder, (topic, partition), topic_id)
        except OSError as error:
            raise storage_error("create", folder, error) from error
        created_ms = self.now_ms if now_ms is None else now_ms
        opened = PartitionLog(folder, config, created_ms, self.files, self.producer_ids)
        opened.flush_wanted = self._ask_for_flush
        self._logs[topic, partition] = opened
        return opened

    def _ask_for_flush(self, asking: PartitionLog, wait_ms: int) -> None:
        if self.flush_wanted is not None:
            self.flush_wanted(asking, wait_ms)
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

    def _prepare(self, folder: Path, partition: Partition, topic_id: bytes) -> None:
        stored = topic_id_of(folder)
        if topic_id != NIL_UUID and stored is None:
            self._discard(folder, partition, f"its {METADATA_FILE} cannot be read")
        elif topic_id != NIL_UUID and stored not in (topic_id, NIL_UUID):
            self._discard(folder, partition, "it has the id of another topic")
        folder.mkdir(exist_ok=True)
        if topic_id not in (stored, NIL_UUID):
            write_topic_id(folder, topic_id)

    def _discard(self, folder: Path, partition: Partition, why: str) -> None:
        """Set a folder aside, or delete it if it holds nothing."""
        if was_used(folder):
            set_aside(folder, partition, why, self.now_ms)
        else:
            log.info("deleting an empty folder of a partition", extra={"folder": str(folder), "why": why})
            self._bury(folder)

    def discard_unknown(self) -> None:
        """Set aside the folders of partitions that are not open: the host has no topic for them.

        A crash while a topic is deleted leaves one, and so does the loss of the metadata.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        for directory in self.directories:
            try:
                for each in partition_folders(directory):
                    if (each.topic, each.index) not in self._logs:
                        self._discard(each.path, (each.topic, each.index), "no topic has this partition")
            except OSError as error:
                raise storage_error("set aside the unknown partitions in", directory, error) from error

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log. Its folder is renamed first, so that a crash leaves either all of it or nothing.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self._cancel_move((topic, partition))
        deleted = self._logs.pop((topic, partition), None)
        if deleted is not None:
            deleted.prepare_leaving()
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
        text = uuid_text(topic_id_of(folder) or NIL_UUID)
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
        unique_id = (topic_id_of(moving.directory) or NIL_UUID).hex()
        if len(f"{moving.name}.{unique_id}{FUTURE_SUFFIX}") > LONGEST_NAME:
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
