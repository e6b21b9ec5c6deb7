"""Plugins as the host uses them: their tables read, their hooks called."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.offers import CLIENT_TELEMETRY, COMPANION, FORWARDER, QUOTA_CALLBACK, TOPIC_WRITER, Hook
from odradek.hosting.plugin_manager import HostPluginManager, InstalledPlugin, missing_keys
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.interface_check import check_interface
from odradek.plugin.places import place_of_definition
from odradek.plugin.protocols import ClientQuotaCallback, Forwarder
from odradek.settings.kinds import Flag
from odradek.settings.reading import read_settings
from odradek.settings.setting import setting
from odradek.settings.toml_file import flatten

T = TypeVar("T")

EXTRAS = ("enrich", "kafka", "otlp", "spark")
"""Plugins that the extra of the same name installs."""
TAKING_PUSHES = (CLIENT_TELEMETRY, FORWARDER, COMPANION, TOPIC_WRITER)
FORWARDER_NAME = re.compile(r"[a-z0-9_-]{1,50}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """The host's own keys in the table of any plugin."""

    enabled: bool | None = setting(
        "enabled",
        Flag(),
        None,
        "Whether the hooks of the plugin are called.",
        unset="`true`; `stdout`: only with a table or `--plugin stdout`",
    )


class PluginState(StrEnum):
    """The state of an installed plugin."""

    ACTIVE = "active"
    IDLE = "idle"
    """Its hooks were called and offered nothing."""
    DISABLED = "disabled"
    """``enabled = false``, or built in and not named by the configuration."""
    BROKEN = "broken"
    """It cannot be imported, does not match the hook specifications, or offers what the host cannot call."""


@dataclass(frozen=True, slots=True)
class ActivePlugin:
    """An installed plugin after the host called its hooks, with everything it offers to this host."""

    installed: InstalledPlugin
    state: PluginState
    offers: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """By hook name. `HostPluginManager.offers` has checked the type of each offer."""
    forwarders: Mapping[str, Forwarder] = field(default_factory=dict)
    """Not started yet. By name: the plugin's own, or ``<plugin>.<name>`` if the plugin has several."""
    forwarder_settings: ForwarderSettings | None = None
    """The host's own keys in the plugin's table; None without a forwarder hook."""

    @property
    def name(self) -> str:
        return self.installed.name

    @property
    def wants_pushes(self) -> bool:
        """Whether it has a destination, writes the telemetry topic, or has a process that reads it."""
        return any(self.offers.get(hook.name) for hook in TAKING_PUSHES)

    def offered(self, hook: Hook[T]) -> tuple[T, ...]:
        """The plugin's answers to one hook."""
        return self.offers.get(hook.name, ())  # type: ignore[return-value]  # checked by the manager


def activate(
    manager: HostPluginManager,
    tables: Mapping[str, Mapping[str, object]],
    requested: Collection[str] = (),
) -> list[ActivePlugin]:
    """Call the hooks of every installed plugin, in the order of their names.

    Args:
        manager: From `load_plugins`.
        tables: ``[plugins.<name>]`` of the configuration; tables inside a table may be nested or dotted.
        requested: Names given by ``--plugin``. Each must be installed and offer something; this overrides
            ``enabled = false``.

    Raises:
        ConfigError: A table is wrong, or a requested plugin is missing or offers nothing.
    """
    for name in sorted(tables):
        refuse_missing(manager, name, f"plugins.{name}")
    for name in sorted(requested):
        refuse_missing(manager, name, f"--plugin {name}")
    return [
        activated(manager, manager.installed[name], tables.get(name), name in requested)
        for name in sorted(manager.installed)
    ]


def survey(manager: HostPluginManager) -> list[ActivePlugin]:
    """The plugins as `activate` finds them without tables; one whose hooks refuse that is broken."""
    return [surveyed(manager, manager.installed[name]) for name in sorted(manager.installed)]


def surveyed(manager: HostPluginManager, plugin: InstalledPlugin) -> ActivePlugin:
    """One plugin without a table."""
    try:
        return activated(manager, plugin, None, wanted=False)
    except ConfigError as error:
        return ActivePlugin(replace(plugin, problem=error.problem), PluginState.BROKEN)


def refuse_missing(manager: HostPluginManager, name: str, path: str) -> None:
    """Refuse a plugin that the configuration names but that is not installed."""
    plugin = manager.installed.get(name)
    if plugin is None:
        hint = f"; install the extra odradek[{name}]" if name in EXTRAS else ""
        installed = ", ".join(sorted(manager.installed))
        raise ConfigError(path, f"no such plugin is installed; installed: {installed}{hint}")


def activated(
    manager: HostPluginManager, plugin: InstalledPlugin, table: Mapping[str, object] | None, wanted: bool
) -> ActivePlugin:
    """Call the hooks of one plugin and check that it read every key of its table."""
    path = f"plugins.{plugin.name}"
    values = {key: value for key, value in flatten(table or {}, path).items() if value != {}}
    config = PluginConfig(path, values)
    enabled = read_settings(PluginSettings, config).enabled
    if enabled is None:
        enabled = not plugin.builtin or table is not None or bool(plugin.rivals)
    if not enabled and not wanted:
        return ActivePlugin(plugin, PluginState.DISABLED)
    if plugin.rivals:
        names = " and ".join(sorted((plugin.distribution, *plugin.rivals)))
        raise ConfigError(path, f"{names} both install a plugin of this name; uninstall one of them")
    if plugin.problem is not None:
        if wanted or table is not None:
            raise ConfigError(path, f"the plugin of {plugin.distribution} cannot be loaded: {plugin.problem}")
        return ActivePlugin(plugin, PluginState.BROKEN)
    offers = {hook: manager.offers(plugin.name, hook, config) for hook in plugin.hooks}
    missing = missing_keys(config)
    settings = read_settings(ForwarderSettings, config) if FORWARDER.name in plugin.hooks else None
    config.finish()
    if wanted and not any(offers.values()):
        keys = f"it read {missing}, which the table lacks" if missing else "set the keys it needs"
        raise ConfigError(path, f"the plugin is asked for, but offers nothing with this table; {keys}")
    state = PluginState.ACTIVE if any(offers.values()) else PluginState.IDLE
    forwarders = named_forwarders(manager, plugin.name, offers.get(FORWARDER.name, ()))
    return ActivePlugin(plugin, state, offers, forwarders, settings)


def named_forwarders(
    manager: HostPluginManager, plugin: str, offers: Sequence[object]
) -> dict[str, Forwarder]:
    """The forwarders of a plugin, by the name used in metrics and committed offsets.

    Raises:
        ConfigError: An offer is not a forwarder, or its name is not allowed.
    """
    found: dict[str, Forwarder] = {}
    path, hook = f"plugins.{plugin}", FORWARDER.name
    for offer in offers:
        if not isinstance(offer, Mapping):
            found[plugin] = offer  # type: ignore[assignment]  # checked by the manager
            continue
        where = place_of_definition(getattr(manager.get_plugin(plugin), hook))
        for name, forwarder in offer.items():
            if not isinstance(name, str) or not FORWARDER_NAME.fullmatch(name):
                expected = "a name of lower case letters, digits, _ and -, at most 50 characters"
                raise ConfigError(path, f"{hook} returned the name {name!r}; expected {expected}{where}")
            source = hook if isinstance(forwarder, Forwarder) else f"{hook}, as {name!r},"
            check_interface(forwarder, (Forwarder,), path, source, where)
            found[f"{plugin}.{name}"] = forwarder
    return found


def quota_callback(plugins: Sequence[ActivePlugin]) -> tuple[str, ClientQuotaCallback] | None:
    """The name and the callback of the plugin that decides client quotas; None if Kafka's own rules do.

    Raises:
        ConfigError: More than one plugin offers a callback.
    """
    return only_offer(plugins, QUOTA_CALLBACK, "decide client quotas")


def only_offer(plugins: Sequence[ActivePlugin], hook: Hook[T], task: str) -> tuple[str, T] | None:
    """The name of the plugin that answers a hook, with its answer; None if there is none.

    Args:
        plugins: All plugins.
        hook: The hook.
        task: What the plugin does, for the message.

    Raises:
        ConfigError: There are several.
    """
    found = [(plugin.name, offer) for plugin in plugins for offer in plugin.offered(hook)]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found[:-1])
        raise ConfigError(
            f"plugins.{found[-1][0]}",
            f"only one plugin may {task}, and {names} already does; disable one of them",
        )
    return found[0] if found else None
