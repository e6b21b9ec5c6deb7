"""The teams that own clients, by patterns of principals or client ids."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from odradek.plugin import ConfigError
from odradek_console.table_file import read_tables

FIELDS: Final = ("principal", "client_id", "group_id")
MOST: Final = 10_000


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
    return Owners(tuple(owner(*each) for each in read_tables(path, "owner", MOST, ("team", *FIELDS))))


def owner(place: str, row: dict[str, Any]) -> Owner:
    """Read one table."""
    patterns = tuple((field, row[field]) for field in FIELDS if field in row)
    if "team" not in row or not patterns or not all(isinstance(each, str) and each for each in row.values()):
        raise ConfigError(place, f"expected texts for team and one of {', '.join(FIELDS)}, found {row!r}")
    return Owner(row["team"], patterns)
