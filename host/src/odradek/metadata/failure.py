"""Failures of the metadata file."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from odradek.bounds.sampled_log import SampledLog
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)


class MetadataFailure(ApiError):
    """The metadata file cannot be read or written now. ``__cause__`` is SQLite's error.

    Args:
        code: The answer to clients.
        problem: The fault, in SQLite's words.
    """

    def __init__(self, code: ErrorCode, problem: str) -> None:
        super().__init__(code, f"the metadata file: {problem}")
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.problem)


OUTSIDE: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
    }
)  # fmt: skip
Failed = Callable[[sqlite3.Error], MetadataFailure]
"""Makes the failure to raise from an error of SQLite."""


class MetadataFailures:
    """Logs the failures of one metadata file, whichever store finds them.

    Args:
        path: The file.
        clock: Paces the log; without a clock only the first failure is logged.
    """

    def __init__(self, path: Path | str, clock: Clock | None = None) -> None:
        self.path, self.clock = path, clock
        self.log = SampledLog(log)

    def storage_error(self, error: sqlite3.Error) -> MetadataFailure:
        """The failure of a request that administers something."""
        return self._logged(ErrorCode.KAFKA_STORAGE_ERROR, error)

    def unavailable(self, error: sqlite3.Error) -> MetadataFailure:
        """The failure with which Kafka answers while a coordinator cannot use its log: clients retry."""
        return self._logged(ErrorCode.COORDINATOR_NOT_AVAILABLE, error)

    def _logged(self, code: ErrorCode, error: sqlite3.Error) -> MetadataFailure:
        problem = in_one_line(error)
        now_ms = 0 if self.clock is None else self.clock.monotonic_ms()
        file = str(self.path)
        self.log.write(logging.ERROR, now_ms, "cannot use the metadata file", file=file, problem=problem)
        return MetadataFailure(code, problem)


@contextmanager
def failing_as(failed: Failed) -> Iterator[None]:
    """Raise a failure in place of an error of SQLite."""
    try:
        yield
    except sqlite3.Error as error:
        raise failed(error) from error


def is_outside(error: BaseException | None) -> bool:
    """Whether the reason of an error is the disk or the system, not the content of the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in OUTSIDE


def in_one_line(text: object) -> str:
    """A text of SQLite, which may quote a statement with line breaks."""
    return " ".join(str(text).split())
