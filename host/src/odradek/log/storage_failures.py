"""Failures of the disks that hold logs, and whether a disk is broken.

After org.apache.kafka.storage.internals.log.LogDirFailureChannel.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The disk is full. Nothing that was written is lost, and the next attempt may succeed. Kafka takes such a
directory offline; then retention and DeleteRecords could no longer make room, and a host would stop."""
ELSEWHERE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EBADF})
"""The process is short of something: this says nothing about the disk."""


class StorageFailures:
    """Turns the failures of all logs of a host into answers, and reports broken disks."""

    __slots__ = ("broken",)

    def __init__(self, broken: Callable[[Path, OSError, str], None] = lambda *_: None) -> None:
        self.broken = broken
        """Called with the path that cannot be used, the error and the problem. May close the logs of its
        directory before it returns."""

    def answer(self, action: str, path: Path, error: OSError) -> ApiError:
        """The answer to clients after an operation on a file has failed."""
        return self._answer(action, path, error, broken=error.errno not in FULL | ELSEWHERE)

    def answer_to_flush(self, path: Path, error: OSError) -> ApiError:
        """The answer after fsync has failed. The disk counts as broken even if it was full: the kernel may
        have dropped pages of acknowledged records, and the next call would succeed without them.
        """
        return self._answer("flush", path, error, broken=error.errno not in ELSEWHERE)

    def _answer(self, action: str, path: Path, error: OSError, *, broken: bool) -> ApiError:
        problem = f"cannot {action} {path.name}: {error.strerror or error}"
        if broken:
            # The error knows better: a move works with files in two directories.
            at = Path(error.filename) if isinstance(error.filename, str | os.PathLike) else path
            self.broken(at, error, problem)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, problem)
