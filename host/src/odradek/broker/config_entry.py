"""Keys of a resource with their values and the sources of these, as DescribeConfigs shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.settings.setting import Setting
from odradek.wire.config_resource import ConfigSource

NOT_A_LIST = "Can't {upper} to key {key} because its type is not LIST."


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A key with a value that is in force, or would be without the stronger synonyms before it."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One key of one resource with the value in force."""

    key: Setting
    value: str | None
    source: ConfigSource
    synonyms: Sequence[ConfigSynonym] = ()
    """Strongest first; the first is the value in force."""
    read_only: bool = False
