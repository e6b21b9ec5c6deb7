"""The teams that own clients, by patterns of principals or client ids."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from odradek.plugin import ConfigError

FIELDS: Final = ("principal", "client_id", "group_id")
EXPECTED: Final = f"expected tables [[owner]] with team and one of {', '.join(FIELDS)}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The clients of a team."""

    team: str
    patterns: tuple[tuple[str, str], ...]
    """Field and pattern; all must match."""

    def owns(self, facts: dict[str, str]) -> bool:
        """Whether a client with these fields is the team's."""
        return all(fnmatchcase(facts[field], pattern) for field, pattern in self.patterns)


class Owners:
    """The teams in the order of the file: the first that matches owns the client.

    Args:
        owners: The teams.
    """

    def __init__(self, owners: tuple[Owner, ...] = ()) -> None:
        self.owners = owners

    def team(self, **facts: str) -> str:
        """The team of a client, by its `FIELDS`; empty if none is known."""
        return next((each.team for each in self.owners if each.owns(facts)), "")


def read_owners(path: Path | None) -> Owners:
    """Read the file of owners; no owners without a file.

    Raises:
        ConfigError: The file cannot be read, or a table in it is wrong.
    """
    if path is None:
        return Owners()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from None
    rows = tables.get("owner")
    if not isinstance(rows, list) or set(tables) != {"owner"}:
        raise ConfigError(str(path), EXPECTED)
    return Owners(tuple(owner(row, f"{path}: owner {number}") for number, row in enumerate(rows, 1)))


def owner(row: object, name: str) -> Owner:
    """Read one table."""
    if not isinstance(row, dict) or not all(isinstance(value, str) and value for value in row.values()):
        raise ConfigError(name, f"{EXPECTED}, found {row!r}")
    patterns = tuple((field, row[field]) for field in FIELDS if field in row)
    if "team" not in row or not patterns or set(row) - {"team", *FIELDS}:
        raise ConfigError(name, f"{EXPECTED}, found the keys {', '.join(row) or 'none'}")
    return Owner(row["team"], patterns)
