"""``odradek plugins``: lists installed plugins and their state in a host with this configuration."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from odradek.cli.listing import json_option, show
from odradek.cli.start_options import config_options
from odradek.hosting.active_plugin import ActivePlugin, activate, survey
from odradek.hosting.offers import COMPANION
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin.plugin_stats import described

Status = Mapping[str, Mapping[str, object]]
"""The progress that the companion of a plugin reports, by plugin."""

COLUMNS = ("name", "distribution", "version", "state", "hooks")


@click.command()
@config_options
@json_option
def plugins(
    config_file: Path | None, overrides: tuple[str, ...], plugins: tuple[str, ...], as_json: bool
) -> None:
    """List installed plugins, and those that --plugin names.

    The state is active, idle (it offers nothing with this configuration), disabled, or broken (it cannot be
    loaded, or a hook fails).
    """
    found, status, waiting, remedy = configured(config_file, overrides, plugins)
    if as_json:
        reported: dict[str, dict[str, object]] = {name: {"status": told} for name, told in status.items()}
        for name, reason in waiting.items():
            reported.setdefault(name, {})["waiting"] = reason
        show(as_json, (row(plugin) | reported.get(plugin.name, {}) for plugin in found), ())
        return
    if sys.stdout.isatty():
        print_table(found)
    else:
        for line in aligned([COLUMNS, *(cells(plugin) for plugin in found)]):
            click.echo(line)
    for reason in dict.fromkeys(waiting.values()):
        names = ", ".join(name for name, why in waiting.items() if why == reason)
        click.echo(f"{reason} (waiting: {names})")
        click.echo(f"create one: {remedy}")
    for name, told in status.items():
        click.echo(f"{name}: " + ", ".join(f"{key} {value}" for key, value in told.items()))


def configured(
    config_file: Path | None, overrides: Sequence[str], plugins: Sequence[str]
) -> tuple[list[ActivePlugin], Status, Mapping[str, str], str]:
    """Call the hooks of every plugin with its table; return the plugins, the status of companions,
    the reasons of plugins that wait in vain for pushes, by name, and the command that ends their wait.

    Raises:
        ConfigError: A table is not valid.
    """
    if not (config_file or overrides or plugins):
        return survey(load_plugins()), {}, {}, ""
    from odradek.programs.config import load_config  # it imports most of the host
    from odradek.programs.file_subscriptions import subscribed
    from odradek.telemetry.subscriptions import CREATE, NO_SUBSCRIPTION

    config = load_config(config_file, overrides, plugins)
    found = activate(load_plugins(config.requested_plugins), config.plugins, config.requested_plugins)
    listener = config.listeners[0]
    bootstrap_servers = listener.nearby(listener.port)
    listeners = [(each.security_protocol, each.nearby(each.port)) for each in config.listeners]
    status = statuses(found, listeners)
    names = [plugin.name for plugin in found if plugin.wants_pushes]
    if names and subscribed(config.data_dir, config.subscriptions) is not False:
        names = []
    return found, status, dict.fromkeys(names, NO_SUBSCRIPTION), CREATE.format(bootstrap_servers)


def statuses(found: Sequence[ActivePlugin], listeners: Sequence[tuple[str, str]]) -> Status:
    """The status of each companion, or the error that its ``status`` raised."""
    from odradek.hosting.companions import address_for  # it needs asyncio

    told: dict[str, Mapping[str, object]] = {}
    for plugin in found:
        for companion in plugin.offered(COMPANION):
            try:
                told[plugin.name] = companion.status(address_for(companion, listeners))
            except Exception as error:  # noqa: BLE001  a plugin may raise anything
                told[plugin.name] = {"problem": described(error)}
    return told


def row(plugin: ActivePlugin) -> dict[str, object]:
    """A plugin as a JSON object. ``problem`` is present if the plugin is broken, and says why."""
    shown: dict[str, object] = {
        "name": plugin.name,
        "distribution": plugin.installed.distribution,
        "version": plugin.installed.version,
        "state": plugin.state.value,
        "hooks": list(plugin.installed.hooks),
    }
    return shown | {"problem": plugin.installed.problem} if plugin.installed.problem else shown


def cells(plugin: ActivePlugin) -> tuple[str, ...]:
    """A plugin as a row of the table."""
    last = plugin.installed.problem or " ".join(plugin.installed.hooks)
    return plugin.name, plugin.installed.distribution, plugin.installed.version, plugin.state.value, last


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format the rows as lines whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(cells_, widths, strict=True)).rstrip()
        for cells_ in rows
    ]


def print_table(found: Sequence[ActivePlugin]) -> None:
    """Print the table for a terminal."""
    from rich.console import Console  # 60 ms that only this branch needs
    from rich.table import Column, Table
    from rich.text import Text

    # A long name folds the distribution only; the problem of a broken plugin has lines of its own below.
    table = Table(
        *(Column(name, no_wrap=name != "distribution", overflow="fold") for name in COLUMNS), box=None
    )
    for plugin in found:
        hooks = " ".join(plugin.installed.hooks)
        table.add_row(*map(Text, (*cells(plugin)[:-1], hooks)))
    console = Console()
    console.print(table)
    for plugin in found:
        if plugin.installed.problem:
            console.print(Text(f"{plugin.name} is broken: {plugin.installed.problem}"))
