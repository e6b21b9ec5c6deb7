"""All logs of a host. Each is a folder ``<topic>-<partition>`` in one of several log directories.

After org.apache.kafka.storage.internals.log.LogManager. The caller holds the locks of the directories.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Final

from odradek.bounds.path_kind import exists
from odradek.log.log_config import LogConfig
from odradek.log.log_directories import LogDirectories
from odradek.log.log_work import LogWork
from odradek.log.partition_folder import (
    LONGEST_NAME,
    METADATA_FILE,
    Partition,
    has_segments,
    topic_id_of,
    write_topic_id,
)
from odradek.log.partition_log import PartitionLog
from odradek.log.private_file import FOLDER_MODE
from odradek.log.producer_ids import ProducerIds
from odradek.log.replica_move import FUTURE_SUFFIX, MoveThrottle, ReplicaMove, Unlimited
from odradek.log.segment_file import OpenFiles
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID

log = logging.getLogger(__name__)

_MAX_PREFERRED: Final = 10_000
"""The most directories that are remembered for partitions that do not exist: requests must not fill the
memory with them."""


class LogManager:
    """The open logs.

    A folder that may hold records is deleted only with its topic. One that does not belong to the partition
    of its name is renamed to ``<topic>-<partition>.<uuid>-stray``. A directory whose disk fails is taken
    offline with its logs; the others go on.

    Args:
        directories: ``log.dirs``.
        now_ms: The time of the start.
        max_open_files: The most descriptors of all logs.
        throttle: The throttle of all moves between directories.
        producer_ids: The count of the producers of all logs.
        failed: Directories that cannot be used, with the problem of each.
        work: Does what the logs ask for.
        directory_failed: Called with the directories that still work, after one has failed.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: no directory can be used.
    """

    def __init__(
        self,
        *directories: Path,
        now_ms: int,
        max_open_files: int = 512,
        throttle: MoveThrottle | None = None,
        producer_ids: ProducerIds | None = None,
        failed: Mapping[Path, str] | None = None,
        work: LogWork | None = None,
        directory_failed: Callable[[list[Path]], None] = lambda _online: None,
    ) -> None:
        self.now_ms = now_ms
        """The time of the start, which counts as the creation time of loaded segments."""
        self.producer_ids = producer_ids or ProducerIds()
        """Shared by all logs."""
        self.work = work or LogWork()
        self.moves: dict[Partition, ReplicaMove] = {}
        """Moves to another directory, by partition."""
        self.throttle = throttle or Unlimited()
        """The throttle of all moves between directories."""
        self._logs: dict[Partition, PartitionLog] = {}
        self._preferred: dict[Partition, Path] = {}
        self.folders = LogDirectories(
            directories, now_ms, failed or {}, self.work, self._close_logs, directory_failed
        )
        self.files = OpenFiles(max_open_files, self.folders.failures)

    @property
    def directories(self) -> tuple[Path, ...]:
        """All directories, in the order of ``log.dirs``."""
        return self.folders.all

    @property
    def online(self) -> list[Path]:
        """The directories that work."""
        return self.folders.online

    @property
    def offline(self) -> Mapping[Path, str]:
        """The directories whose disk failed, with the problem of each."""
        return self.folders.offline

    def _close_logs(self, directory: Path) -> int:
        """Take the logs of a directory offline."""
        failed = {key: each for key, each in self.items() if each.directory.parent == directory}
        for each in failed.values():
            each.offline = True  # all before the first is closed: a waiting fetch reads the others again
        for key, move in list(self.moves.items()):
            if key in failed:
                del self.moves[key]
                move.abandon()
            elif move.directory == directory:
                self._cancel_move(key)
        for each in failed.values():
            each.go_offline()
        return len(failed)

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
        now_ms = self.now_ms if now_ms is None else now_ms
        working = len(self.online)
        try:
            opened = self._opened((topic, partition), config, topic_id, now_ms, exists)
        except ApiError:
            if not 0 < len(self.online) < working:
                raise
            # A directory has failed: the partition is offline, or a new one is placed in another directory.
            return self.open(topic, partition, config, topic_id, now_ms, exists=exists)
        self._logs[topic, partition] = opened
        return opened

    def _opened(
        self, partition: Partition, config: LogConfig, topic_id: bytes, now_ms: int, exists: bool
    ) -> PartitionLog:
        name = f"{partition[0]}-{partition[1]}"
        found = self._found(name, partition, topic_id)
        if found is None and exists and self.offline:
            # It must not start again at offset 0 elsewhere.
            folder = next(iter(self.offline)) / name
            return PartitionLog(
                folder, config, now_ms, self.files, self.producer_ids, self.work.flush, offline=True
            )
        folder = (found or self._new_directory(partition)) / name
        try:
            if exists and not has_segments(folder):
                log.error(
                    "a partition starts empty: its folder is missing or has no segments",
                    extra={
                        "folder": str(folder),
                        "way_back": "stop the host; restore the folder; start the host",
                    },
                )
            self._prepare(folder, partition, topic_id)
        except OSError as error:
            raise self.files.failures.answer("create", folder, error) from error
        return PartitionLog(folder, config, now_ms, self.files, self.producer_ids, self.work.flush)

    def _found(self, name: str, partition: Partition, topic_id: bytes) -> Path | None:
        """The directory of an existing log; None if there is none in the directories that work."""
        found = self.folders.holding(name)
        if len(found) > 1:
            found = self.folders.of_topic(found, partition, topic_id)
        if len(found) > 1:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{name} is in {found[0]} and {found[1]}: keep one of the folders",
            )
        return found[0] if found else None

    def _new_directory(self, partition: Partition) -> Path:
        """The directory that was requested, else the one with the fewest logs.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: no directory works.
        """
        preferred, online = self._preferred.pop(partition, None), self.online
        if not online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "all log directories are offline")
        if preferred in online:
            return preferred
        if len(online) == 1:
            return online[0]  # counting takes time in proportion to all logs
        counts = Counter(each.directory.parent for each in self)
        return min(online, key=counts.__getitem__)

    def _prepare(self, folder: Path, partition: Partition, topic_id: bytes) -> None:
        stored = topic_id_of(folder)
        if topic_id != NIL_UUID and stored is None:
            self.folders.discard(folder, partition, f"its {METADATA_FILE} cannot be read")
        elif topic_id != NIL_UUID and stored not in (topic_id, NIL_UUID):
            self.folders.discard(folder, partition, "it has the id of another topic")
        folder.mkdir(FOLDER_MODE, exist_ok=True)
        if topic_id not in (stored, NIL_UUID):
            write_topic_id(folder, topic_id)

    def discard_unknown(self, deleted: Collection[bytes] = ()) -> None:
        """Set aside the folders of partitions that are not open: the host has no topic for them. The loss of
        the metadata leaves such folders.

        Conversely, log how many open partitions have no folder because a directory is offline.

        Args:
            deleted: The ids of topics whose folders are deleted. A stop while a topic is deleted leaves some.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: no directory works any longer.
        """
        self.folders.discard_unknown(self._logs, deleted)
        stranded = [each.name for each in self if not each.has_offsets]
        if stranded:
            log.warning(
                "partitions are offline until a start finds their directory",
                extra={"partitions": len(stranded), "such_as": stranded[0]},
            )

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log. Its folder is renamed first, so that a crash leaves either all of it or nothing. The
        folder of an offline log stays; a start that can read it sets it aside.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        self._cancel_move((topic, partition))
        deleted = self._logs.pop((topic, partition), None)
        if deleted is not None:
            deleted.prepare_leaving()
        folders = [each / f"{topic}-{partition}" for each in self.online]
        if deleted is not None:
            folders = [] if deleted.offline else [deleted.directory]
        try:
            for folder in folders:
                if exists(folder):
                    self.folders.bury(folder)
        except OSError as error:
            raise self.files.failures.answer("delete", folder, error) from error
        finally:
            if deleted is not None:
                deleted.deleted()

    # Moving

    def move(self, topic: str, partition: int, directory: Path, clock: Clock) -> ReplicaMove | None:
        """Start to move a log; None if there is nothing to do now.

        A partition that does not exist yet will be created in ``directory``.

        Raises:
            ApiError: INVALID_TOPIC_EXCEPTION, LOG_DIR_NOT_FOUND; KAFKA_STORAGE_ERROR: the directory or the
                partition is offline.
        """
        if len(f"{topic}-{partition}.{NIL_UUID.hex()}{FUTURE_SUFFIX}") > LONGEST_NAME:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic name is too long")
        self._check_destination(directory)
        key = topic, partition
        moving = self._logs.get(key)
        if moving is None:
            self._preferred[key] = directory
            if len(self._preferred) > _MAX_PREFERRED:
                del self._preferred[next(iter(self._preferred))]
            return None
        unique_id = self._topic_id(moving).hex()
        going = self.moves.get(key)
        if going is not None and going.directory == directory:
            return going
        self._cancel_move(key)
        if moving.directory.parent == directory:
            return None
        move = ReplicaMove(moving, directory, unique_id, clock, self.files, self.throttle, self.work.remove)
        self.moves[key] = move

        def ended(_outcome: object) -> None:
            if self.moves.get(key) is move:
                del self.moves[key]

        self.work.move(move, ended)
        return move

    def _check_destination(self, directory: Path) -> None:
        if directory not in self.directories:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{directory} is not one of log.dirs")
        if directory in self.offline:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{directory} is offline")

    def _topic_id(self, moving: PartitionLog) -> bytes:
        if moving.offline:
            raise moving.offline_error()
        try:
            return topic_id_of(moving.directory) or NIL_UUID
        except OSError as error:
            raise self.files.failures.answer("move", moving.directory, error) from error

    def _cancel_move(self, key: Partition) -> None:
        move = self.moves.pop(key, None)
        if move is not None:
            move.cancel()

    def resume_moves(self, clock: Clock) -> None:
        """Restart the moves that a stop or a crash has interrupted."""
        for (topic, partition), each in self.items():
            directory = self.folders.unfinished.pop(each.name, None)
            if directory in self.online and not each.offline:
                self.move(topic, partition, directory, clock)

    # All logs

    def flush(self) -> None:
        """Flush all logs. Blocks.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, from the first log that fails.
        """
        for each in self:
            each.flush()

    def close(self, in_time: Callable[[], bool] = lambda: True) -> None:
        """Close all logs, so that the next start is quick. If one fails, close the others nevertheless.

        Args:
            in_time: Asked before each log that takes time to close. From the first no on, their files are
                only closed, and the next start recovers them.
        """
        for move in self.moves.values():
            move.close()
        late = 0
        # Those first that take longest to recover.
        for each in sorted(self, key=attrgetter("unsaved_bytes"), reverse=True):
            if each.unsaved_bytes and (late or not in_time()):
                late += 1
                each.release()
                continue
            try:
                each.close()
            except ApiError as error:
                log.warning(
                    "cannot close a log: the next start recovers it",
                    extra={"log": each.name, "problem": str(error)},
                )
        if late:
            log.warning(
                "the time to stop is over: the next start recovers the logs that are still open",
                extra={"logs": late},
            )
        self._logs.clear()
