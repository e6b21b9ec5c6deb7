"""The settings of a host with their values at the start."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from odradek.settings.setting import Setting, walk


@dataclass(frozen=True, slots=True)
class StartValue:
    """One key."""

    setting: Setting
    text: str | None
    """The value as Kafka prints it; None for null."""
    given: bool
    """Whether the configuration file or ``--set`` has the key, even with the default as its value."""


def start_values(settings: Any, given: Collection[str] | None = None) -> dict[str, StartValue]:
    """Return the values of all settings that may occur in a configuration file, by key.

    Args:
        settings: A dataclass of settings, with sections or without.
        given: The keys of the file. None if there was no file: every value other than the default is given.
    """
    values = {}
    kind: Any = type(settings)
    for path, declaration in declarations(kind):
        if declaration.in_file:
            value = reduce(getattr, path, settings)
            is_given = value != declaration.default if given is None else declaration.name in given
            is_null = bool(declaration.fallbacks) and not is_given
            text = None if is_null else declaration.text(value)
            values[declaration.name] = StartValue(declaration.of_broker(), text, is_given)
    return values


@cache
def declarations(kind: Any) -> tuple[tuple[tuple[str, ...], Setting], ...]:
    """The same for all objects of a class."""
    return tuple(walk(kind))
