"""The configuration file: TOML whose dotted keys need no quotes, even if one begins like another.

Kafka has settings like ``max.connections`` and ``max.connections.per.ip``. For TOML, the first is a value and
the second needs a table of the same name, so a file with both is not TOML. `parsed` reads such a file as if
the later of the two keys were in quotes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from odradek.plugin.config import ConfigError

CLASH = re.compile(r"Cannot overwrite a value \(at line (\d+),")
"""tomllib's error when a key is a value and a table; the line is the one where the second value ends."""
DOTTED_KEY = re.compile(r"^(\s*)([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+)(?=\s*=)")
"""A line that begins with a dotted key without quotes."""


def read_toml(path: Path) -> dict[str, object]:
    """Return the file's content.

    Raises:
        ConfigError: The file cannot be read, or it is not TOML.
    """
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"is not TOML: {error}") from error


def parsed(text: str) -> dict[str, object]:
    """Return the content of a file, with keys quoted where TOML needs it.

    Raises:
        TOMLDecodeError: It is not TOML for another reason.
    """
    lines = [*text.replace("\r\n", "\n").split("\n"), ""]
    while True:
        try:
            return tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as error:
            clash = CLASH.search(str(error))
            if clash is None:
                raise
            index = statement(lines, int(clash[1]))
            quoted = DOTTED_KEY.sub(r'\1"\2"', lines[index], count=1)
            if quoted == lines[index]:
                raise
            lines[index] = quoted


def statement(lines: list[str], end: int) -> int:
    """Return the index of the line where the statement begins that ends on line number ``end``.

    The lines before a statement are TOML; a value of several lines that is cut is not.
    """
    for index in range(end - 1, 0, -1):
        try:
            tomllib.loads("\n".join(lines[:index]))
        except tomllib.TOMLDecodeError:
            continue
        return index
    return 0


def flatten(table: Mapping[str, object], path: str = "", prefix: str = "") -> dict[str, object]:
    """Return all values of a nested table by dotted key.

    An empty table stays, so that ``[plugins.<name>]`` without keys is seen.

    Args:
        table: The table; the dotted keys in it may be quoted or nested.
        path: Its path, for errors.
        prefix: The beginning of the keys.

    Raises:
        ConfigError: A key is given in both spellings.
    """
    flat: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found = flatten(value, path, f"{name}.") or {name: {}}
        else:
            found = {name: value}
        for twice in found.keys() & flat.keys():
            raise ConfigError(f"{path}.{twice}" if path else twice, "given twice; remove one of the two")
        flat |= found
    return flat
