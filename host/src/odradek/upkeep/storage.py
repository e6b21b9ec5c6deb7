"""The host's files, under locks: the metadata file and the log directories."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from odradek.log.directory_format import FormatError, migrate, refuse_newer
from odradek.log.log_manager import LogManager
from odradek.log.log_work import LogWork
from odradek.log.producer_ids import ProducerIds
from odradek.log.replica_move import MoveThrottle
from odradek.metadata.failure import MetadataFailure, in_one_line, is_outside
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import StoreError
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.plugin.config import ConfigError
from odradek.upkeep.data_dir import DataDir, UnusableDirectory
from odradek.upkeep.metadata_recovery import open_metadata
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

METADATA_FILE = "metadata.db"
LOG_FOLDER = "logs"


@contextmanager
def known_format(directory: Path, key: str) -> Iterator[None]:
    """Report errors of the format of a log directory.

    Raises:
        UnusableDirectory: It cannot be read or written.
        ConfigError: This release does not know the format.
    """
    try:
        yield
    except OSError as error:
        raise UnusableDirectory(key, f"{directory} cannot be used: {error.strerror}") from error
    except FormatError as error:
        raise ConfigError(key, str(error)) from error


def unwritable(directories: Sequence[Path], key: str) -> dict[Path, str]:
    """Bring log directories to the newest format; return the problem of each that cannot be written.

    Raises:
        ConfigError: The file of a directory names no version.
    """
    failed = {}
    for directory in directories:
        try:
            with known_format(directory, key):
                migrate(directory)
        except UnusableDirectory as error:
            failed[directory] = error.problem
    return failed


class Storage:
    """The open data directory of one host and its log directories.

    Args:
        path: ``data.dir``.
        now_ms: The time of the start.
        log_dirs: ``log.dirs``; empty for one folder inside the data directory.
        throttle: The throttle of moves between log directories.
        producer_ids: Limits of the producers of all partitions.
        recover_metadata: Rebuild a lost or damaged metadata file from the partitions.
        open_segments: The most segment files that are open at a time.
        directory_failed: Called with the directories that still work, after one has failed.
        clock: Paces the log of failures of the metadata file.
        work: Does what the logs ask for.

    Raises:
        ConfigError: The data directory or all log directories cannot be used, another process uses one, or
            a newer release wrote one. Nothing stays open.
    """

    def __init__(
        self,
        path: Path,
        now_ms: int,
        log_dirs: Sequence[Path] = (),
        throttle: MoveThrottle | None = None,
        producer_ids: ProducerIds | None = None,
        *,
        recover_metadata: bool = False,
        open_segments: int = 512,
        directory_failed: Callable[[list[Path]], None] = lambda _online: None,
        clock: Clock | None = None,
        work: LogWork | None = None,
    ) -> None:
        with ExitStack() as opened:
            opened.enter_context(DataDir(path))
            key = self.logs_key = "log.dirs" if log_dirs else "data.dir"
            directories = log_dirs or (path / LOG_FOLDER,)
            if len({each.resolve() for each in directories}) < len(directories):
                raise ConfigError(key, "names a directory twice; list each directory once")
            failed: dict[Path, str] = {}
            for directory in directories:
                try:
                    if directory.resolve() != path.resolve():
                        opened.enter_context(DataDir(directory, key))
                    with known_format(directory, key):
                        refuse_newer(directory)
                except UnusableDirectory as error:
                    # Topics must not be rebuilt without the partitions of this directory.
                    if recover_metadata or len(failed) + 1 == len(directories):
                        raise
                    failed[directory] = error.problem
            online = [each for each in directories if each not in failed]
            self.metadata_path = path / METADATA_FILE
            self.open_metadata(opened, online, now_ms, clock, recover_metadata)
            failed |= unwritable(online, key)
            try:
                self.logs = LogManager(
                    *directories,
                    now_ms=now_ms,
                    max_open_files=open_segments,
                    throttle=throttle,
                    producer_ids=producer_ids,
                    failed=failed,
                    work=work,
                    directory_failed=directory_failed,
                )
            except ApiError as error:
                raise ConfigError(key, str(error)) from error
            self.opened = opened.pop_all()

    def open_metadata(
        self,
        opened: ExitStack,
        directories: Sequence[Path],
        now_ms: int,
        clock: Clock | None,
        recover: bool,
    ) -> None:
        """Open the metadata file for each of its stores.

        Raises:
            ConfigError: The file cannot be used.
        """
        try:
            self.metadata = open_metadata(self.metadata_path, directories, now_ms, clock, recover=recover)
            opened.callback(self.metadata.close)
            self.offsets = SqliteOffsetStore(self.metadata_path, self.metadata.failures)
            opened.callback(self.offsets.close)
            self.transactions = SqliteTransactionStore(self.metadata_path, self.metadata.failures)
            opened.callback(self.transactions.close)
        except (StoreError, ApiError, OSError) as error:
            raise ConfigError("data.dir", str(error)) from error

    def changes(self) -> int:
        """Number of rows written to the metadata file since the start."""
        connections = self.metadata.connection, self.offsets.connection, self.transactions.connection
        return sum(each.total_changes for each in connections)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Report errors of the files while the host loads them.

        Raises:
            ConfigError: A file is damaged, or cannot be read or written.
        """
        try:
            yield
        # ValueError: text, JSON or the code of an enumeration that is not valid
        except (ApiError, OSError, StoreError, sqlite3.Error, ValueError) as error:
            of_metadata = isinstance(error, MetadataFailure)
            # A stored configuration that was valid once is not valid any more.
            invalid = isinstance(error, ApiError) and error.code is ErrorCode.INVALID_CONFIG
            if isinstance(error, ApiError | OSError) and not (of_metadata or invalid):
                raise ConfigError(self.logs_key, in_one_line(error)) from error
            cause = error.__cause__ if of_metadata else error
            if is_outside(cause):
                problem = f"{self.metadata_path} cannot be used: {in_one_line(cause)}"
                raise ConfigError("data.dir", problem) from error
            raise ConfigError(
                "data.dir",
                f"{self.metadata_path} is damaged: {in_one_line(cause)}; restore the file from a backup, or"
                " move it away and start once with --recover-metadata to rebuild the topics from their"
                " partitions",
            ) from error

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close all files if the body of the statement raises."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self, in_time: Callable[[], bool] = lambda: True) -> None:
        """Close all files, then release the locks. Logs that are not closed ``in_time`` are recovered by the
        next start.
        """
        try:
            self.logs.close(in_time)
        finally:
            self.opened.close()
