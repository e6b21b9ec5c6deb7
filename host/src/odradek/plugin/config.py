"""A configuration table, read with types, ranges and defaults; a key that nothing reads is an error."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from odradek.bounds.small_file import expanded


class ConfigError(Exception):
    """The user's configuration is unusable. The host does not start and exits with status 2.

    Args:
        path: The key, from the top of the file: ``plugins.otlp.timeout.ms``.
        problem: The mistake, and the expected value.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


@dataclass(slots=True)
class PluginConfig:
    """One table, read key by key. `finish` refuses the keys that were not read.

    Nested tables are flattened: ``[plugins.otlp.headers] x = "1"`` is the key ``headers.x``, so a dotted key
    works with and without quotes. The readers accept values from TOML and text from ``--set key=value``.
    """

    path: str
    """Path of the table from the top of the file: ``plugins.otlp``."""
    values: Mapping[str, object]
    known: set[str] = field(default_factory=set)
    """The keys that were read."""
    tables: set[str] = field(default_factory=set)
    """The keys that were read as tables."""

    def text(self, key: str, default: str | None = None) -> str | None:
        """Read a string."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(key, f"expected a string, found {value!r}")
        return value

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Read one of ``choices``."""
        value = self.value(key)
        if value is None:
            return default
        if value not in choices:
            raise self.error(key, f"expected one of {', '.join(choices)}, found {value!r}")
        return str(value)

    def integer(self, key: str, default: int, least: int = 0, most: int = 2**63 - 1) -> int:
        """Read a whole number from ``least`` to ``most``."""
        value = self.value(key)
        if value is None:
            return default
        expected = f"expected a whole number from {least} to {most}, found {value!r}"
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise self.error(key, expected)
        try:
            number = int(value)
        except ValueError:
            raise self.error(key, expected) from None
        if not least <= number <= most:
            raise self.error(key, expected)
        return number

    def boolean(self, key: str, default: bool) -> bool:
        """Read a boolean."""
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {value!r}")
        return value

    def texts(self, key: str, default: Sequence[str] = ()) -> list[str]:
        """Read a list of strings, or one string with commas."""
        value = self.value(key)
        if value is None:
            return list(default)
        if isinstance(value, str):
            return [item.strip() for item in value.split(",")] if value.strip() else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"expected a list of strings, found {value!r}")
        return list(value)

    def table(self, key: str) -> dict[str, str]:
        """Read a table of strings below ``key``; empty if it is absent."""
        self.tables.add(key)
        if self.values.get(key, {}) != {}:
            raise self.error(key, "expected a table of strings")  # the value may be a secret
        prefix = f"{key}."
        rows = {
            name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)
        }
        self.known.update((key, *(prefix + name for name in rows)))
        for name, value in rows.items():
            if not isinstance(value, str):
                raise self.error(prefix + name, f"expected a string, found {value!r}")
        return {name: str(value) for name, value in rows.items()}

    def file(self, key: str) -> Path | None:
        """Read the path of a file, which must exist; None if the key is absent."""
        text = self.text(key)
        if text is None:
            return None
        try:
            path = expanded(text)
            is_file = path.is_file()
        except OSError:  # a folder that may not be searched
            is_file = False
        if not is_file:
            raise self.error(key, f"expected a file, found {text!r}")
        return path

    def value(self, key: str) -> object | None:
        """Read the raw value; None if the key is absent."""
        self.known.add(key)
        return self.values.get(key)

    def error(self, key: str, problem: str) -> ConfigError:
        """An error that names the key from the top of the file."""
        return ConfigError(f"{self.path}.{key}" if self.path else key, problem)

    def finish(self, listed_in: str = "") -> None:
        """Refuse keys that nothing has read.

        Args:
            listed_in: The page that lists all keys, where there are too many to name them in an error.

        Raises:
            ConfigError: A key is unknown.
        """
        for key in self.values:
            if key not in self.known:
                spellings = [*self.known, *in_tables(key, self.tables)]
                raise self.error(key, unknown_key([key], spellings, listed_in, self.tables))


def unknown_key(
    spellings: Sequence[str], known: Collection[str], listed_in: str = "", tables: Collection[str] = ()
) -> str:
    """The problem with a key that does not exist: the key that was probably meant, or else the known ones.

    Args:
        spellings: The texts that may be the key, without its path.
        known: All keys.
        listed_in: The page that lists all keys, where there are too many to name them in an error.
        tables: Keys of tables that may have any keys.
    """
    close = next((match for each in spellings if (match := nearest(each, known))), "")
    meant = f" (did you mean {close}?)" if close else ""
    if listed_in:
        return f"unknown key{meant}; all keys: {listed_in}"
    return f"unknown key{meant}" if close else f"unknown key; {known_at(spellings[0], known, tables)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a misspelled one; empty if none is close."""
    return next(iter(get_close_matches(name, sorted(known), 1)), "")


def in_tables(key: str, tables: Iterable[str]) -> Iterator[str]:
    """The key with the name of each table in it that was probably meant: ``headers.x`` for ``headres.x``."""
    parts = key.split(".")
    for table in tables:
        depth = table.count(".") + 1
        if nearest(".".join(parts[:depth]), [table]):
            yield ".".join([table, *parts[depth:]])


def known_at(key: str, known: Iterable[str], tables: Collection[str]) -> str:
    """The known keys that share the longest path with this one."""
    names = sorted({each for each in known if each not in tables and not in_table(each, tables)})
    names += [f"{table}.*" for table in sorted(tables)]
    parts = key.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        path = ".".join(parts[:depth])
        there = [name for name in names if name.startswith(f"{path}.")]
        if there:
            return f"known in {path}: {', '.join(there)}"
    return f"known here: {', '.join(names)}"


def in_table(key: str, tables: Iterable[str]) -> bool:
    """Whether the key belongs to one of the tables."""
    return any(key.startswith(f"{table}.") for table in tables)
