"""Failures of the metadata file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


class MetadataFailure(ApiError):
    """The metadata file cannot be read or written now. ``__cause__`` is SQLite's error.

    Args:
        code: The answer to clients.
        problem: What is wrong, in SQLite's words.
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


def unavailable(error: sqlite3.Error) -> MetadataFailure:
    """The failure with which Kafka answers while a coordinator cannot use its log: clients retry."""
    return MetadataFailure(ErrorCode.COORDINATOR_NOT_AVAILABLE, in_one_line(error))


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
