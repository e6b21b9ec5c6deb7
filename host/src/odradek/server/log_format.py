"""The log of a host on stderr: lines for people, or JSON objects for programs."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path

from odradek.plugin.config import ConfigError
from odradek.settings.secrets import Secrets

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
    """A fixed message followed by its fields: ``WARNING odradek.log: cannot close a log log=t-0``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line, newline, traceback = super().format(record).partition("\n")
        about = [f" {key}={shown(value)}" for key, value in fields(record).items()]
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


UNITS = ("B", "KiB", "MiB", "GiB")


class Size(int):
    """A number of bytes, shown to people in the largest unit of which there is one."""

    def __str__(self) -> str:
        amount, unit = float(self), UNITS[0]
        for unit in UNITS:
            if amount < 1024 or unit == UNITS[-1]:
                break
            amount /= 1024
        return f"{amount:.1f}".removesuffix(".0") + unit


AUDIT = "odradek.audit"
"""The logger of the audit log."""
MOST_REMEMBERED = 9
"""Older configurations whose secrets stay hidden."""
FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": LineFormatter, "json": JsonFormatter}
"""By value of ``--log-format``."""


def log_to_stderr(level: str, form: str = "text") -> None:
    """Log to stderr; stdout belongs to the ready line and to plugins.

    Args:
        level: The lowest level to log, in lower case.
        form: One of `FORMATTERS`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HidingFormatter(FORMATTERS[form]()))
    logging.basicConfig(level=level.upper(), handlers=[handler])


def audit_to_file(path: Path) -> None:
    """Write the audit log to a file that only its owner can read, instead of stderr.

    The file is opened again after a rotation.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        handler = PrivateFileHandler(path, encoding="utf-8")
    except OSError as error:
        reason = str(error.strerror).lower()
        raise ConfigError("audit.log.file", f"{path} cannot be written: {reason}") from error
    handler.setFormatter(HidingFormatter(JsonFormatter()))
    log = logging.getLogger(AUDIT)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


class PrivateFileHandler(WatchedFileHandler):
    """Appends to a file that only its owner can read."""

    def _open(self) -> TextIOWrapper:
        opener = partial(os.open, mode=0o600)
        return open(self.baseFilename, "a", encoding=self.encoding, opener=opener)


class HidingFormatter(logging.Formatter):
    """Writes the lines of another formatter without secrets."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner
        self.secrets: list[Secrets] = []
        """Those of each configuration that was read: an old password may still be the one in force."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.inner.format(record)
        for secrets in self.secrets:
            line = secrets.hide(line)
        return line


def hide_in_log(secrets: Secrets) -> None:
    """Do not show these secrets in the lines that `log_to_stderr` and `audit_to_file` write."""
    for handler in (*logging.getLogger().handlers, *logging.getLogger(AUDIT).handlers):
        formatter = handler.formatter
        if isinstance(formatter, HidingFormatter) and secrets not in formatter.secrets:
            formatter.secrets = [*formatter.secrets[-MOST_REMEMBERED:], secrets]
