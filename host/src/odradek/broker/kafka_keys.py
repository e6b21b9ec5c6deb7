"""Keys of Kafka's brokers that are not settings of this host, with their types and defaults (Kafka 4.4.0).

Those that Kafka changes at run time are stored and described here, and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import LARGEST, Flag, Items, Kind, Special, Whole
from odradek.settings.setting import Scope, Setting
from odradek.wire.config_resource import ConfigType

DOCUMENTATION = "A setting of Apache Kafka that this host does not have: it has no effect."
TABLE = "kafka_keys.txt"
"""When a key changes, key, type and default; no default means null. A type may have a smallest value.

``start``: Kafka reads it at its start. ``cordoned.log.dirs`` and classes are among them, although Kafka
changes them: without an effect they would be a promise that is not kept. ``one``: it changes at run time, and
only with the id of a broker. ``all``: it changes on one broker or on all.
"""
NEVER_SHOWN = frozenset({
    "broker.id", "log.dir", "internal.metadata.delete.delay.millis", "internal.metadata.log.segment.bytes",
    "internal.metadata.max.batch.size.in.bytes",
})  # fmt: skip
"""Others of the first kind: the first two would have wrong defaults, and Kafka lists no internal ones."""


@cache
def rows() -> list[tuple[str, str]]:
    """When each key changes, and the rest of its line."""
    lines = files(__package__).joinpath(TABLE).read_text().splitlines()
    return [(when, rest) for when, _, rest in (line.partition(" ") for line in lines)]


@cache
def kafka_keys() -> Mapping[str, Setting]:
    """The declarations of these keys by name; made when they are first asked for."""
    found = (declaration(rest, Scope.START if when == "start" else Scope.BROKER) for when, rest in rows())
    return {each.name: each for each in found}


@cache
def keys_of_one_broker() -> frozenset[str]:
    """Keys that cannot be set on all brokers."""
    return frozenset(rest.split(" ", 1)[0] for when, rest in rows() if when == "one")


def unknown_key(name: str) -> Setting:
    """The declaration of a key that nobody knows: Kafka does not show its values, which may be secrets."""
    return Setting(
        name=name,
        kind=Special(type=ConfigType.UNKNOWN, shape="", read=PluginConfig.text),
        default=None,
        documentation="",
        sensitive=True,
    )


def declaration(line: str, scope: Scope) -> Setting:
    """Return the setting of one line of the tables."""
    name, words, *default = line.split(" ", 2)
    word, _, least = words.partition(">=")
    kind = kind_of(ConfigType[word], least)
    return Setting(
        name=name,
        kind=kind,
        default=kind.parse(default[0].strip('"')) if default else None,
        documentation=DOCUMENTATION,
        scope=scope,
        sensitive=kind.type is ConfigType.PASSWORD,
    )


def kind_of(of_type: ConfigType, least: str) -> Kind:
    """Values of a type."""
    if of_type in LARGEST:
        return Whole(of_type, int(least) if least else -LARGEST[of_type] - 1)
    if of_type is ConfigType.BOOLEAN:
        return Flag()
    if of_type is ConfigType.LIST:
        return Items()
    if of_type is ConfigType.DOUBLE:
        return Special(type=of_type, shape="", read=PluginConfig.text, parse=double)
    return Special(type=of_type, shape="", read=PluginConfig.text)


def double(text: str) -> str:
    """Return the text of a number.

    Raises:
        ValueError: It is none; in Kafka's words.
    """
    try:
        float(text)
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None
    return text.strip()
