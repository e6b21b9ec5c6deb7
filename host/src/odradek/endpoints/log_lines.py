"""The forms of a log line, and the file of an audit log: the same for a host and for programs beside it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from typing import Final

MINUTE_S: Final = 60
MOST_LINES: Final = 1
"""Of a library, of one kind, in a minute."""
MOST_KINDS: Final = 100
"""Kinds of a minute that are told apart."""
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""The attributes of every record; any other is a field of its event."""


def fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields that the caller gave as ``extra``."""
    return {key: value for key, value in vars(record).items() if key not in STANDARD}


def shown(value: object) -> str:
    """A value on one line; the items of a list are separated by commas.

    Line breaks and control characters are escaped: a client that chooses a name could forge a line.
    """
    text = ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
    return text if text.isprintable() else "".join(map(escaped, text))


def escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


class LineFormatter(logging.Formatter):
    """A message, and the fields that are not in it: ``WARNING odradek.log: cannot close a log log=t-0``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line, newline, traceback = super().format(record).partition("\n")
        told = record.args if isinstance(record.args, tuple) else ()
        about = [
            f" {key}={shown(value)}"
            for key, value in fields(record).items()
            if not (isinstance(value, str) and value in told)
        ]
        return "".join([line, *about, newline, traceback])


class JsonFormatter(logging.Formatter):
    """One JSON object on one line: time, level, logger, message, the fields, and a traceback if there is one.

    A field with the name of one of these has a trailing underscore.
    """

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        row: dict[str, object] = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["traceback"] = self.formatException(record.exc_info)
        row |= {f"{key}_" if key in row else key: value for key, value in fields(record).items()}
        return json.dumps(row, default=str, skipkeys=True)


class LibraryFilter(logging.Filter):
    """Lets few lines of each kind of the libraries' through: strangers can cause any number of them.

    A line has the number of those that were left out in the minute before. Lines of ours pass. They are
    bounded where they are written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.began_s = 0.0
        self.written: Counter[tuple[str, str]] = Counter()
        """Lines in the current minute, by logger and text without its arguments."""
        self.before: Counter[tuple[str, str]] = Counter()
        """The same of the minute before."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("odradek"):
            return True
        if not self.began_s <= record.created < self.began_s + MINUTE_S:
            self.began_s = record.created
            self.written, self.before = Counter(), self.written
        kind = record.name, str(record.msg)
        if kind not in self.written and len(self.written) >= MOST_KINDS:
            kind = ("", "")
        self.written[kind] += 1
        unlogged = self.before.pop(kind, 0) - MOST_LINES
        if unlogged > 0:
            record.unlogged = unlogged
        return self.written[kind] <= MOST_LINES


FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": LineFormatter, "json": JsonFormatter}
"""By value of ``--log-format``."""


class PrivateFileHandler(WatchedFileHandler):
    """Appends to a file that only its owner can read.

    Events that the file cannot take, and those for a pipe that nobody reads, go to the log of the program: an
    event neither waits, nor is lost, nor ends what it tells of.
    """

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=private)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # the file cannot be opened again
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        if not isinstance(sys.exc_info()[1], BlockingIOError):
            self.drop()
        logging.getLogger().handle(record)

    def drop(self) -> None:
        """Open the file again for the next event."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with contextlib.suppress(OSError):  # what it holds is in the log of the program
                stream.close()

    def close(self) -> None:
        self.drop()
        super().close()


def private(path: str, flags: int) -> int:
    """Open a file for its owner alone, without waiting for the reader of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
