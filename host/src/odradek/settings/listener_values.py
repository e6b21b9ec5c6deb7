"""Values of settings for a single listener, or for a SASL mechanism of a listener.

``listener.name.<listener>.<key>`` replaces ``<key>`` for a listener, and
``listener.name.<listener>.<mechanism>.<key>`` for one mechanism of it; both names are in lower case.
A setting has such values if its declaration says ``by_listener`` or ``by_mechanism``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.reading import Checked
from odradek.settings.setting import Setting, declared, walk

PREFIX = "listener.name."
KEY = re.compile(
    re.escape(PREFIX)
    + r"(?P<listener>[^.]+)\.(?:(?P<mechanism>plain|scram-sha-256|scram-sha-512|oauthbearer)\.)?(?P<base>.+)"
)
T = TypeVar("T")


def listener_key(listener: str, key: str, mechanism: str = "") -> str:
    """Return the key of a listener's own value, or of the value for one SASL mechanism of it."""
    parts = (listener.lower(), mechanism.lower(), key) if mechanism else (listener.lower(), key)
    return PREFIX + ".".join(parts)


def base_of(key: str) -> str:
    """Return a key without the names of a listener and a mechanism, if it has them."""
    match = KEY.fullmatch(key)
    return key if match is None else match["base"]


def wider_keys(key: str) -> list[str]:
    """Return the keys whose values apply, strongest first: the key itself, the listener's, the host's."""
    match = KEY.fullmatch(key)
    if match is None:
        return [key]
    return list(dict.fromkeys((key, listener_key(match["listener"], match["base"]), match["base"])))


def declaration_of(key: str, settings: Mapping[str, Setting]) -> Setting | None:
    """Return the declaration of a key, under that key; None if no setting has such a key.

    Args:
        key: With the names of a listener and a mechanism, or without.
        settings: Declarations, by key without these names.
    """
    match = KEY.fullmatch(key)
    if match is None:
        return settings.get(key)
    found = settings.get(match["base"])
    if found is None or not found.by_listener or (match["mechanism"] and not found.by_mechanism):
        return None
    return replace(found, name=key)


def read_listener_values(kind: type[Any], table: PluginConfig, listeners: Collection[str]) -> dict[str, Any]:
    """Return the own values of listeners in a table, by full key.

    Args:
        kind: A dataclass of settings, with all its sections.
        table: The table; keys that no setting has are left for `PluginConfig.finish`.
        listeners: The names of all listeners.

    Raises:
        ConfigError: A value is wrong, or there is no such listener.
    """
    keys = [key for key in table.values if key.startswith(PREFIX)]
    if not keys:
        return {}
    settings = {each.name: each for _, each in walk(kind)}
    names = {name.lower() for name in listeners}
    values = {}
    for key in keys:
        declaration = declaration_of(key, settings)
        match = KEY.fullmatch(key)
        if declaration is None or match is None:
            continue
        if match["listener"] not in names:
            raise table.error(
                key, f"no listener has the name {match['listener']}; known here: {', '.join(sorted(names))}"
            )
        if table.value(key) is not None:
            values[key] = declaration.kind.read(table, key)
    return values


def of_listener(settings: T, values: Mapping[str, Any], listener: str, mechanism: str = "") -> T:
    """Return the settings of one listener, or of one SASL mechanism of it.

    Args:
        settings: A dataclass of settings; its sections are not changed.
        values: Own values of listeners, by full key.
        listener: The name of the listener.
        mechanism: The name of the mechanism; empty for the listener itself.

    Raises:
        ConfigError: The values contradict each other.
    """
    kind: Any = type(settings)
    found: dict[str, Any] = {}
    for name, each in declared(kind).items():
        for key in wider_keys(listener_key(listener, each.name, mechanism)):
            if key in values:
                found[name] = values[key]
                break
    if not found:
        return settings
    made: T = replace(settings, **found)  # type: ignore[type-var]  # a dataclass
    if isinstance(made, Checked):
        try:
            made.check()
        except ConfigError as error:
            keys = wider_keys(listener_key(listener, error.path, mechanism))
            raise ConfigError(
                next((key for key in keys if key in values), error.path), error.problem
            ) from None
    return made
