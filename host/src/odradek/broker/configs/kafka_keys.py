"""Keys of Kafka's brokers that are not settings of this host, with their types and defaults (Kafka 4.4.0)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import Special
from odradek.settings.setting import Setting
from odradek.wire.config_resource import ConfigType

DOCUMENTATION = "A setting of Apache Kafka that this host does not have."
TABLE = "kafka_keys.txt"
"""Key, type and default; no default means null. ``broker.id`` and ``log.dir`` are missing: their defaults
would be wrong here."""


@cache
def kafka_keys() -> Mapping[str, Setting]:
    """The declarations of these keys by name; made when they are first asked for."""
    lines = files(__package__).joinpath(TABLE).read_text().splitlines()
    return {each.name: each for each in map(declaration, lines)}


def declaration(line: str) -> Setting:
    """Return the setting of one line of the table."""
    name, kind, *default = line.split(" ", 2)
    return Setting(
        name=name,
        kind=Special(type=ConfigType[kind], shape="", read=PluginConfig.text),
        default=default[0].strip('"') if default else None,
        documentation=DOCUMENTATION,
        sensitive=kind == ConfigType.PASSWORD.name,
    )
