"""Configuration keys as DescribeConfigs shows them, and where their values come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from odradek.wire.config_resource import ConfigSource, ConfigType

LIST_SEPARATOR = re.compile(r"\s*,\s*")
WHOLE_NUMBERS = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key that a resource can have."""

    name: str
    type: ConfigType
    default: str | None
    documentation: str


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A key and a value that stand, or would stand, behind a configuration."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key of one resource with the value in force."""

    key: ConfigKey
    value: str | None
    source: ConfigSource
    synonyms: Sequence[ConfigSynonym] = ()
    """Strongest first; the first is the value in force."""
    read_only: bool = False


def elements(value: str) -> list[str]:
    """The items of a LIST, as ``ConfigDef.parseType`` splits it. A repeated item counts once (KIP-1161)."""
    trimmed = value.strip()
    return list(dict.fromkeys(LIST_SEPARATOR.split(trimmed))) if trimmed else []


def rendered(kind: ConfigType, value: str | None) -> str | None:
    """A stored, valid value as ``ConfigDef.convertToString`` prints it: ``" 1000 "`` becomes ``"1000"``."""
    if value is None:
        return None
    if kind is ConfigType.LIST:
        return ",".join(elements(value))
    if kind in WHOLE_NUMBERS:
        return str(int(value))
    if kind is ConfigType.BOOLEAN:
        return value.strip().lower()
    return value.strip()
