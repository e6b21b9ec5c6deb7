"""TOML files with secrets."""

from __future__ import annotations

import logging
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from odradek.endpoints import read_small_file
from odradek.plugin import ConfigError

log = logging.getLogger(__name__)

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MAX_FILE_BYTES: Final = 1 << 20


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        ConfigError: It cannot be read. The message never shows what is in it.
    """
    try:
        return tomllib.loads(read_small_file(path, MAX_FILE_BYTES).decode())
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except ValueError:
        raise ConfigError(str(path), "expected TOML") from None


def warn_of_readers(path: Path, what: str, instead: str) -> None:
    """Warn if other users of the machine can read the file.

    Args:
        path: The file.
        what: Its secrets, for people.
        instead: What to do.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        log.warning(
            "%s can be read by other users: %s", what, instead, extra={"file": str(path), "mode": f"{mode:o}"}
        )
