"""Making dataclasses of settings from a configuration file or from the texts of an admin client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Protocol, TypeVar, runtime_checkable

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import TABLE
from odradek.settings.setting import Section, Setting, declared, sections

T = TypeVar("T")


@runtime_checkable
class Checked(Protocol):
    """Settings that depend on each other."""

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: They are not; the path is the key of one of them.
        """


def read_settings(kind: Callable[..., T], table: PluginConfig, within: Section | None = None) -> T:
    """Make a dataclass of settings from a table; missing keys keep their defaults.

    Raises:
        ConfigError: A value is wrong, or two values contradict each other.
        TypeError: ``kind`` is no dataclass.
    """
    if not hasattr(kind, "__dataclass_fields__"):
        raise TypeError(f"{kind.__name__} is no dataclass; write @dataclass(frozen=True) above it")
    values: dict[str, Any] = {}
    for name, each in declared(kind).items():
        key = within.prefix + each.name if within else each.name
        if each.in_file and (each.kind is TABLE or table.value(key) is not None):
            values[name] = each.kind.read(table, key)
    for name, part in sections(kind).items():
        values[name] = read_settings(part.type, table, part)
    made = kind(**values)
    if isinstance(made, Checked):
        try:
            made.check()
        except ConfigError as error:
            raise table.error(error.path, error.problem) from None
    return made


@cache
def by_key(kind: Any, own: bool = False) -> Mapping[str, tuple[str, Setting]]:
    """The settings of a dataclass without its sections, by key, each with its field.

    Args:
        kind: The dataclass.
        own: True for the keys of TOPIC and GROUP resources.
    """
    found = ((name, each.of_resource() if own else each) for name, each in declared(kind).items())
    return {each.name: (name, each) for name, each in found if each.name}


def changed(settings: T, texts: Mapping[str, str], own: bool = False) -> T:
    """Return a copy of the settings with some values changed.

    Args:
        settings: A dataclass of settings.
        texts: Texts of an admin client, by key; all of them are keys of the dataclass.
        own: True if the keys are those of a TOPIC or GROUP resource.

    Raises:
        ConfigError: A text is not a value of its setting, in Kafka's words.
    """
    kind: Any = type(settings)
    keys = by_key(kind, own)
    values = {}
    for key, text in texts.items():
        name, each = keys[key]
        values[name] = each.parse(text)
    return replace(settings, **values)  # type: ignore[type-var]  # a dataclass
