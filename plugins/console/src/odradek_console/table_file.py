"""TOML files of tables of one kind, which may hold secrets."""

from __future__ import annotations

import logging
import re
import stat
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from odradek.endpoints import read_small_file
from odradek.plugin import ConfigError

log = logging.getLogger(__name__)

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MAX_FILE_BYTES: Final = 1 << 20
PLACE: Final = re.compile(r"\(at [^()]*\)$")


def read_tables(
    path: Path, name: str, most: int, keys: Collection[str], needed: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables ``[[name]]`` of a file, each with its place for errors.

    Args:
        path: The file.
        name: Of the tables.
        most: The number of tables.
        keys: That a table may have.
        needed: Those of them that it must have.

    Raises:
        ConfigError: The file cannot be read, or has something else. The message never shows what.
    """
    try:
        found = tomllib.loads(read_small_file(path, MAX_FILE_BYTES).decode())
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        where = PLACE.search(str(error))  # the rest may show what is in the file
        raise ConfigError(str(path), f"cannot be read: expected TOML {where[0] if where else ''}") from None
    rows = found.get(name)
    if found.keys() != {name} or not isinstance(rows, list) or not 0 < len(rows) <= most:
        raise ConfigError(str(path), f"expected 1 to {most} tables [[{name}]], and nothing else")
    for number, row in enumerate(rows, start=1):
        place = f"{path}: [[{name}]] number {number}"
        if not isinstance(row, dict) or not set(needed) <= row.keys() <= set(keys):
            raise ConfigError(place, f"expected a table with the keys {', '.join(keys)}")
        yield place, row


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
