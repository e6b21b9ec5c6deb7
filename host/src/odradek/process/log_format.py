"""The log of a host on stderr, and its audit log. Neither shows secrets."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from odradek.endpoints.log_lines import FORMATTERS, JsonFormatter, LibraryFilter, PrivateFileHandler
from odradek.plugin.config import ConfigError
from odradek.settings.secrets import Secrets

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


LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}
"""The levels that an operator may choose, as `logging` has them."""
NOT_SET = "NOTSET"
"""The level of a logger that logs what the others above it do."""
AUDIT = "odradek.audit"
"""The logger of the audit log."""
MOST_REMEMBERED = 9
"""Older configurations whose secrets stay hidden."""


def log_to_stderr(level: str, form: str = "text") -> None:
    """Log to stderr; stdout belongs to the ready line and to plugins.

    Args:
        level: The lowest level to log, in lower case.
        form: One of `FORMATTERS`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(HidingFormatter(FORMATTERS[form]()))
    handler.addFilter(LibraryFilter())
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
