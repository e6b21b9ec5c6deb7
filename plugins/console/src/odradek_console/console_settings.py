"""The keys of ``[plugins.console]``, which are the options of ``odradek console``.

A key is the name of an option with dots: ``max.clients`` for ``--max-clients``. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import make_dataclass
from typing import Any, Final

import click

from odradek.plugin import PluginConfig
from odradek.settings import FILE, LONG, TEXT, Choice, Items, Kind, Whole, declare, read_settings
from odradek_console.terminal.console_options import console_options
from odradek_console.terminal.options import milliseconds, reading_from

LISTENER: Final = "listener"
SERVERS: Final = "bootstrap.servers"
KEYS: Final = {"bootstrap_server": SERVERS}
"""Keys that are not the name of their parameter."""
UNSET: Final[Mapping[str, str]] = {
    "allowed.hosts": "any with a login, loopback without",
    "audit.log": "stderr",
    LISTENER: "none: the console does not run",
    "oidc.ca": "those of the system",
    "oidc.client.id": "required with a provider",
    "oidc.client.secret.file": "none: a public client",
    "oidc.label": "the provider's host",
    "program.ca": "those of the system",
    "role.header": "none: all are viewers",
    SERVERS: "the host",
}
"""Defaults in words."""
PAGES: Final[Mapping[str, str]] = {
    "alarms": "#alarms",
    "grafana.url": "../../contrib/grafana/README.md",
    "owners": "#owners",
    "programs": "../../host/docs/reference/metrics.md",
    "tables": "#older-points",
}
"""Sections and pages with more about a key."""
MOST_MS: Final = 999_999_999


@click.command("console")
@reading_from("12h")
@console_options
def options(**_: object) -> None:
    """The options of the command, without its pages, which a host does not have to import."""


def key_of(parameter: click.Parameter) -> str:
    """The key of an option."""
    name = parameter.name or ""
    return KEYS.get(name, name.replace("_", "."))


def kind_of(parameter: click.Parameter) -> Kind:
    """The kind of the values of an option in the table."""
    kind = parameter.type
    if parameter.multiple:
        return Items()
    if key_of(parameter).endswith(".ms"):
        return Whole(LONG, 1, MOST_MS)
    if isinstance(kind, click.IntRange):
        return Whole(LONG, int(kind.min or 0), None if kind.max is None else int(kind.max))
    if isinstance(kind, click.Choice):
        return Choice({str(each): str(each) for each in kind.choices})
    return FILE if isinstance(kind, click.Path) and kind.exists else TEXT


def declared(parameter: click.Option) -> Any:
    """The declaration of the key of an option."""
    key, kind, default = key_of(parameter), kind_of(parameter), parameter.default
    unit = (parameter.metavar or "").lower() if isinstance(kind, Whole) else ""
    if key.endswith(".ms"):
        default, unit = milliseconds(click.Context(options), parameter, str(default)), "ms"
    has_default = isinstance(default, str | int) and default != ""
    return declare(
        key,
        kind,
        default if has_default else None,
        parameter.help or "",
        unit=unit,
        unset=UNSET.get(key, "" if has_default else "none"),
        page=PAGES.get(key, ""),
    )


OPTIONS: Final = [each for each in options.params if isinstance(each, click.Option)]
ConsoleSettings: Final[Any] = make_dataclass(
    "ConsoleSettings",
    [(str(each.name), object, declared(each)) for each in OPTIONS],
    frozen=True,
    kw_only=True,
)
"""A field for each option of the command."""


def read_arguments(config: PluginConfig) -> list[str]:
    """Read the table: options of the command for the keys that it has, without the address of the cluster.

    Raises:
        ConfigError: A value is not of its kind.
    """
    settings, arguments = read_settings(ConsoleSettings, config), []
    for each in OPTIONS:
        key, value = key_of(each), getattr(settings, str(each.name))
        if key == SERVERS or config.value(key) is None:
            continue
        unit = "ms" if key.endswith(".ms") else ""
        for part in value if each.multiple else (value,):
            arguments += [max(each.opts, key=len), f"{part}{unit}"]
    return arguments
