"""The directories of all logs: which of them work, and the folders that a stop or a crash left in them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from pathlib import Path
from typing import Final

from odradek.bounds.path_kind import exists
from odradek.log.log_work import LogWork
from odradek.log.partition_folder import (
    Partition,
    last_segment,
    partition_folders,
    partition_of,
    set_aside,
    topic_id_of,
    was_used,
)
from odradek.log.private_file import FOLDER_MODE
from odradek.log.replica_move import DELETED_SUFFIX, FUTURE_SUFFIX, MOVED_MARK
from odradek.log.storage_failures import StorageFailures
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

OFFLINE_WAY_BACK: Final = (
    "repair or replace the disk, then restart the host; to give the partitions up, remove the directory from"
    " log.dirs first"
)
_NAME_LENGTH: Final = 180
"""How much of a log's name a deleted folder keeps: with id and suffix it must fit into 255 characters."""


class LogDirectories:
    """The directories in the order of ``log.dirs``.

    A directory that cannot be prepared is offline.

    Args:
        paths: The directories, which are created if they do not exist.
        now_ms: The time of the start.
        failed: Directories that are offline from the beginning, with the problem of each.
        work: Deletes abandoned folders.
        close_logs: Called with each directory that fails; closes its logs and returns their number.
        directory_failed: Called after that with the directories that still work.

    Raises:
        ApiError: KAFKA_STORAGE_ERROR: no directory can be prepared.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        now_ms: int,
        failed: Mapping[Path, str],
        work: LogWork,
        close_logs: Callable[[Path], int],
        directory_failed: Callable[[list[Path]], None],
    ) -> None:
        self.failures = StorageFailures(self._broken)
        self.all = tuple(each.absolute() for each in paths)
        self.now_ms = now_ms
        self.offline: dict[Path, str] = {}
        """The directories whose disk failed, with the problem of each."""
        self.unfinished: dict[str, Path] = {}
        """The destinations of interrupted moves, by the name of the log."""
        self.work, self.close_logs, self.directory_failed = work, close_logs, directory_failed
        for path, problem in failed.items():
            self.offline[path.absolute()] = problem
            self._report(path.absolute(), 0)
        for step in (self._create, self._settle_copies, self._settle_moves):
            for each in self.online:
                self._run(step, each)
        if not self.online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "; ".join(self.offline.values()))

    @property
    def online(self) -> list[Path]:
        """The directories that work, in order."""
        return [each for each in self.all if each not in self.offline]

    def holding(self, name: str) -> list[Path]:
        """The directories that hold a folder of this name.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: a directory cannot be read.
        """
        found = []
        for each in self.online:
            try:
                if exists(each / name):
                    found.append(each)
            except OSError as error:
                raise self.failures.answer("read", each / name, error) from error
        return found

    def of_topic(self, found: list[Path], partition: Partition, topic_id: bytes) -> list[Path]:
        """The directories whose folder may be that of the topic; a folder with the id of another topic is set
        aside if a folder with the right id is there.

        A topic that is deleted and created again while a directory is offline leaves two folders.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: a directory cannot be read or written.
        """
        name = f"{partition[0]}-{partition[1]}"
        try:
            ids = {each: topic_id_of(each / name) for each in found}
            if topic_id == NIL_UUID or topic_id not in ids.values():
                return found
            for each, stored in ids.items():
                if stored not in (topic_id, NIL_UUID, None):
                    self.discard(each / name, partition, "it has the id of another topic")
        except OSError as error:
            raise self.failures.answer("read", found[0] / name, error) from error
        return [each for each, stored in ids.items() if stored in (topic_id, NIL_UUID, None)]

    # Failures

    def _broken(self, path: Path, error: OSError, problem: str) -> None:
        """Take the directory of a path offline. A file that is missing is the trouble of one partition."""
        around = [each for each in self.online if path.is_relative_to(each)]
        if around:
            directory = max(around, key=lambda each: len(each.parts))
            if not (isinstance(error, FileNotFoundError) and os.path.isdir(directory)):
                self.take_offline(directory, f"{problem} ({path})")

    def take_offline(self, directory: Path, problem: str) -> None:
        """Use a directory no longer."""
        self.offline[directory] = problem
        self._report(directory, self.close_logs(directory))
        self.directory_failed(self.online)

    def _report(self, directory: Path, partitions: int) -> None:
        log.error(
            "a log directory is offline",
            extra={
                "directory": str(directory),
                "problem": self.offline[directory],
                "partitions": partitions,
                "way_back": OFFLINE_WAY_BACK,
            },
        )

    # The start

    def _run(self, step: Callable[[Path], None], directory: Path) -> None:
        """Prepare a directory; again if another one fails meanwhile. If it fails itself, take it offline."""
        while directory in self.online:
            working = len(self.online)
            try:
                step(directory)
                return
            except OSError as error:
                problem = self.failures.answer("use", directory, error)
            except ApiError as error:
                problem = error
            if len(self.online) == working:
                self.take_offline(directory, str(problem))

    def _create(self, directory: Path) -> None:
        directory.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        for leftover in self._found(directory, DELETED_SUFFIX):
            self.work.remove(leftover)

    def _found(self, directory: Path, suffix: str) -> list[Path]:
        return [directory / name for name in sorted(os.listdir(directory)) if name.endswith(suffix)]

    def _settle_copies(self, directory: Path) -> None:
        """Delete the unfinished copies of moving logs, unless a copy is all that is left of a log."""
        for copy in self._found(directory, FUTURE_SUFFIX):
            name = copy.name.rpartition(".")[0]
            partition = partition_of(name)
            if partition is None or self.holding(name):
                self.unfinished[name] = copy.parent
                self.work.remove(copy)
            elif not self.offline:  # else the log may be in an offline directory
                why = "it is the unfinished copy of a partition that is in no directory"
                self.discard(copy, partition, why)

    def _settle_moves(self, directory: Path) -> None:
        """Finish moves that a crash interrupted after the takeover: of two folders only the copy stays.

        The mark is in the copy. It does not prove that the other folder may go, because a folder may have
        been restored or copied with its mark: see `_replaces`.
        """
        for name in sorted(os.listdir(directory)):
            copy = directory / name
            mark, partition = copy / MOVED_MARK, partition_of(name)
            if partition is None or not exists(mark):
                continue
            for other in self.holding(name):
                older = other / name
                if other == directory:
                    continue
                if self._replaces(copy, older):
                    self.bury(older)
                else:
                    why = f"{copy} is marked as its replacement, but is of another topic or has less records"
                    set_aside(older, partition, why, self.now_ms)
            mark.unlink()

    def _replaces(self, copy: Path, older: Path) -> bool:
        """Whether the copy is of the same topic and extends at least as far."""
        return topic_id_of(copy) == topic_id_of(older) and last_segment(copy) >= last_segment(older)

    # Folders that go

    def discard(self, folder: Path, partition: Partition, why: str) -> None:
        """Set a folder aside, or delete it if it holds nothing.

        Raises:
            OSError: The folder is still there.
        """
        if was_used(folder):
            set_aside(folder, partition, why, self.now_ms)
        else:
            log.info("deleting an empty folder of a partition", extra={"folder": str(folder), "why": why})
            self.bury(folder)

    def discard_unknown(self, known: Container[Partition], deleted: Collection[bytes]) -> None:
        """Set aside the folders of unknown partitions; delete those of deleted topics.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: a folder cannot be renamed although its directory works, or no
                directory works any longer.
        """
        for directory in self.online:
            try:
                for each in partition_folders(directory):
                    partition = (each.topic, each.index)
                    if partition in known:
                        continue
                    if deleted and topic_id_of(each.path) in deleted:
                        self.bury(each.path)
                    else:
                        self.discard(each.path, partition, "no topic has this partition")
            except OSError as error:
                problem = self.failures.answer("set aside the unknown partitions in", directory, error)
                if directory in self.online or not self.online:
                    raise problem from error

    def bury(self, folder: Path) -> None:
        """Rename a folder and delete it: a crash leaves either all of it or nothing.

        Raises:
            OSError: The folder is still there.
        """
        text = uuid_text(topic_id_of(folder) or NIL_UUID)
        number = 0
        while True:
            grave = folder.with_name(f"{folder.name[:_NAME_LENGTH]}.{text}.{number}{DELETED_SUFFIX}")
            if not exists(grave):
                break
            number += 1
        os.rename(folder, grave)
        self.work.remove(grave)  # the next start removes what is left
