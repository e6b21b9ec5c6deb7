"""The kinds of values of settings: how each is read, parsed, printed and documented.

``read`` takes the value from the configuration file or ``--set``, and its errors say what was expected.
``parse`` takes the text from an admin client, and its errors are those of Kafka's ConfigDef.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from odradek.bounds.small_file import expanded
from odradek.plugin.config import PluginConfig
from odradek.wire.config_resource import ConfigType
from odradek.wire.limits import INT32_MAX, INT64_MAX

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
LARGEST = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT32_MAX, ConfigType.LONG: INT64_MAX}
LIST_SEPARATOR = re.compile(r"\s*,\s*")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
DURATION = re.compile(r"([0-9]{1,12}) *(ms|s|m|h|d)")


class BadElement(ValueError):
    """A bad value that Kafka quotes in its parsed form: an element of a list, or a number out of range."""

    def __init__(self, element: object, problem: str) -> None:
        super().__init__(problem)
        self.element = str(element)


class Kind(Protocol):
    """The form of a setting's values."""

    @property
    def type(self) -> ConfigType:
        """The type in DescribeConfigs."""

    @property
    def shape(self) -> str:
        """Type and bounds, for the reference page."""

    @property
    def metavar(self) -> str:
        """The placeholder of a value, or of an item of a list, in the help of a command: ``FILE``."""

    def read(self, table: PluginConfig, key: str) -> Any:
        """Return the value of a key that the table has.

        Raises:
            ConfigError: The value is not of this kind.
        """

    def parse(self, text: str) -> Any:
        """Return the value of an admin client's text.

        Raises:
            ValueError: The text is not a value of this kind; in Kafka's words.
        """

    def text(self, value: Any) -> str:
        """Return a value as Kafka prints it."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number in ``least..most``."""

    metavar: ClassVar = "INTEGER"

    type: ConfigType = ConfigType.INT
    least: int = 0
    bound: int | None = None
    """The largest number; None for the largest of the type."""

    @property
    def most(self) -> int:
        return LARGEST[self.type] if self.bound is None else self.bound

    @property
    def shape(self) -> str:
        if self.bound is not None:
            return f"integer, {self.least} to {self.bound}"
        return f"integer, from {self.least}" if self.least else "integer"

    def read(self, table: PluginConfig, key: str) -> int:
        return table.integer(key, 0, self.least, self.most)

    def parse(self, text: str) -> int:
        trimmed = text.strip()
        value = int(trimmed) if WHOLE_NUMBER.fullmatch(trimmed) else None
        if value is None or not -LARGEST[self.type] - 1 <= value <= LARGEST[self.type]:
            raise ValueError(f"Not a number of type {self.type.name}")
        check_range(value, self.least, self.most)
        return value

    def text(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in ``least..most``, which need not be whole."""

    metavar: ClassVar = "NUMBER"

    least: float = 0
    most: float = math.inf

    @property
    def type(self) -> ConfigType:
        return ConfigType.DOUBLE

    @property
    def shape(self) -> str:
        return f"number, {between(self.least, self.most)}"

    def read(self, table: PluginConfig, key: str) -> float:
        value = table.value(key)
        try:
            return self.parse("" if isinstance(value, bool) else str(value))
        except ValueError:
            bounds = "from " + between(self.least, self.most).removeprefix("from ")
            raise table.error(key, f"expected a number {bounds}, found {value!r}") from None

    def parse(self, text: str) -> float:
        try:
            value = float(text.strip())
        except ValueError:
            raise ValueError("Not a number of type DOUBLE") from None
        check_range(value, self.least, self.most)
        return value

    def text(self, value: float) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Duration:
    """A time with its unit, such as ``200ms``, ``30s``, ``5m``, ``2h`` or ``7d``; the value is in
    milliseconds.
    """

    metavar: ClassVar = "TIME"
    least_ms: int = 0
    most_ms: int = INT64_MAX

    @property
    def type(self) -> ConfigType:
        return ConfigType.LONG

    @property
    def shape(self) -> str:
        most = math.inf if self.most_ms == INT64_MAX else self.text(self.most_ms)
        return f"duration, {between(self.text(self.least_ms), most)}"

    def read(self, table: PluginConfig, key: str) -> int:
        value = table.value(key)
        try:
            return self.parse(value if isinstance(value, str) else "")
        except ValueError:
            bounds = self.shape.removeprefix("duration, ").removeprefix("from ")
            example = "such as 200ms, 30s, 5m, 2h or 7d"
            raise table.error(key, f"expected a duration {example}, from {bounds}, found {value!r}") from None

    def parse(self, text: str) -> int:
        found = DURATION.fullmatch(text.strip())
        if found is None:
            raise ValueError("Not a duration")
        value = int(found[1]) * UNITS_MS[found[2]]
        check_range(value, self.least_ms, self.most_ms)
        return value

    def text(self, value: int) -> str:
        unit = next(unit for unit, unit_ms in reversed(UNITS_MS.items()) if not value % unit_ms)
        return f"{value // UNITS_MS[unit] if value else 0}{unit if value else 'ms'}"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    metavar: ClassVar = "BOOLEAN"

    @property
    def type(self) -> ConfigType:
        return ConfigType.BOOLEAN

    @property
    def shape(self) -> str:
        return "boolean"

    def read(self, table: PluginConfig, key: str) -> bool:
        return table.boolean(key, False)

    def parse(self, text: str) -> bool:
        value = {"true": True, "false": False}.get(text.strip().lower())
        if value is None:
            raise ValueError("Expected value to be either true or false")
        return value

    def text(self, value: bool) -> str:
        return str(value).lower()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words, each with the value that it stands for."""

    choices: Mapping[str, Any]

    @property
    def type(self) -> ConfigType:
        return ConfigType.STRING

    @property
    def shape(self) -> str:
        return " or ".join(f"`{choice}`" for choice in self.choices)

    @property
    def metavar(self) -> str:
        return one_of(self.choices)

    def read(self, table: PluginConfig, key: str) -> Any:
        return self.choices[table.choice(key, "", list(self.choices))]

    def parse(self, text: str) -> Any:
        if text not in self.choices:
            raise ValueError(f"String must be one of: {', '.join(self.choices)}")
        return self.choices[text]

    def text(self, value: Any) -> str:
        return next(text for text, chosen in self.choices.items() if chosen == value)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of words; in a text they are separated by commas."""

    choices: Sequence[str] = ()
    """The allowed words; empty if all words are allowed."""
    least: int = 0
    """The smallest number of words."""
    most: int | None = None
    """The largest number of words; None if there is none."""
    collect: Callable[[Sequence[str]], Collection[str]] = tuple

    @property
    def type(self) -> ConfigType:
        return ConfigType.LIST

    @property
    def shape(self) -> str:
        return "list"

    @property
    def metavar(self) -> str:
        return one_of(self.choices) if self.choices else "TEXT"

    def read(self, table: PluginConfig, key: str) -> Collection[str]:
        items = table.texts(key)
        if self.most is not None and len(items) > self.most:
            raise table.error(key, f"expected at most {self.most} items, found {len(items)}")
        if len(items) < self.least or (self.choices and not set(items) <= set(self.choices)):
            some = "one or more of" if self.least else "a list of"
            words = ", ".join(self.choices) or "texts"
            raise table.error(key, f"expected {some} {words}, found {','.join(items)!r}")
        return self.collect(items)

    def parse(self, text: str) -> Collection[str]:
        items = elements(text)
        for item in sorted(set(items) - set(self.choices)) if self.choices else ():
            raise BadElement(item, f"String must be one of: {', '.join(self.choices)}")
        return self.collect(items)

    def text(self, value: Collection[str]) -> str:
        return ",".join(sorted(value) if isinstance(value, frozenset) else value)


def printed(value: Any) -> str:
    """Return a value as ``str`` prints it; the elements of a tuple are separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def pairs(table: Mapping[str, str]) -> str:
    """Return a table as ``name=text`` with commas."""
    return ",".join(f"{name}={text}" for name, text in table.items())


def one_of(words: Iterable[str]) -> str:
    """Return the metavar of a value that is one of some words."""
    return f"[{'|'.join(words)}]"


def between(least: object, most: object) -> str:
    """Return bounds in words."""
    return f"from {least}" if most == math.inf else f"{least} to {most}"


def stripped(text: str) -> str:
    """Return a text without surrounding blanks."""
    return text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """A value with its own form."""

    type: ConfigType = ConfigType.STRING
    shape: str
    metavar: str = "TEXT"
    read: Callable[[PluginConfig, str], Any]
    parse: Callable[[str], Any] = stripped
    text: Callable[[Any], str] = printed


def new_file(config: PluginConfig, key: str) -> Path | None:
    """Read the path of a file that may be missing, in a folder that exists; None without one.

    Raises:
        ConfigError: There is no such folder, or the path is one.
    """
    text = config.text(key)
    if not text:
        return None
    try:
        path = expanded(text)
        has_place = path.parent.is_dir() and not path.is_dir()
    except OSError:
        has_place = False
    if not has_place:
        raise config.error(key, f"expected a file in an existing folder, found {text!r}")
    return path


INT, LONG, LIST = ConfigType.INT, ConfigType.LONG, ConfigType.LIST
TEXT = Special(shape="text", read=PluginConfig.text)
FILE = Special(shape="path of a file", metavar="FILE", read=PluginConfig.file)
NEW_FILE = Special(shape="path of a file", metavar="FILE", read=new_file)
TABLE = Special(shape="table of texts", read=PluginConfig.table, text=pairs)
"""Read also if the table is absent: its keys are known then."""


def check_range(value: float, least: float, most: float) -> None:
    """Check that a number is in ``least..most``.

    Raises:
        BadElement: It is not; in Kafka's words.
    """
    if value < least:
        raise BadElement(value, f"Value must be at least {least}")
    if not value <= most:
        raise BadElement(value, f"Value must be no more than {most}")


def elements(text: str) -> list[str]:
    """Return the items of a LIST, after ``ConfigDef.parseType``; a repeated one counts once (KIP-1161)."""
    trimmed = text.strip()
    return list(dict.fromkeys(LIST_SEPARATOR.split(trimmed))) if trimmed else []


def rendered(kind: ConfigType, text: str) -> str:
    """Return a valid text as ``ConfigDef.convertToString`` prints it: ``" 1000 "`` becomes ``"1000"``."""
    if kind is ConfigType.LIST:
        return ",".join(elements(text))
    if kind in LARGEST:
        return str(int(text))
    if kind is ConfigType.BOOLEAN:
        return text.strip().lower()
    return text.strip()
