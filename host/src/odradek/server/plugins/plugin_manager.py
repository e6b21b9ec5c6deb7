"""Installed plugins: found by entry point, loaded one by one, each given its own table and nothing else.

There is no global manager: `load_plugins` returns a new one. A distribution that cannot be imported is listed
with its error and stops nobody, unless the configuration names it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

import odradek
from odradek.delivery.forwarder_settings import ForwarderSettings, read_settings
from odradek.plugin import hookspecs
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.protocols import (
    ClientQuotaCallback,
    ClientTelemetry,
    ClientTelemetryExporterProvider,
    Companion,
    Enricher,
    Forwarder,
)
from odradek.server.plugins import stdout_receiver

log = logging.getLogger(__name__)

GROUP = "odradek"
"""The entry point group, pluggy's project name and the distribution of the host."""
TRACE_VARIABLE = "ODRADEK_TRACE_PLUGINS"
"""Set to 1: each hook call is a line on stderr (names and types only: tables hold secrets)."""
EXTRAS = ("enrich", "kafka", "otlp", "spark")
"""Plugins that ``pip install odradek[<name>]`` brings."""
BUILTIN = {"stdout": stdout_receiver}
"""Plugins inside the host. They wait until they are asked for."""
OFFERS: dict[str, tuple[type, ...]] = {
    "odradek_client_telemetry": (ClientTelemetry, ClientTelemetryExporterProvider),
    "odradek_enricher": (Enricher,),
    "odradek_forwarder": (Forwarder, Mapping),
    "odradek_quota_callback": (ClientQuotaCallback,),
    "odradek_companion": (Companion,),
}
"""Hook: what its answer has to be one of."""
FORWARDER_NAME = re.compile(r"[a-z0-9_-]{1,50}")


class PluginState(StrEnum):
    """What became of an installed plugin."""

    ACTIVE = "active"
    IDLE = "idle"
    """Its hooks were called and offered nothing."""
    DISABLED = "disabled"
    """``enabled = false``, or built in and not asked for."""
    BROKEN = "broken"
    """It cannot be imported, or does not fit the hooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """One entry point of the group, as it was found."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    builtin: bool = False
    problem: str | None = None
    """Why it is broken; None when it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePlugin:
    """One installed plugin after its hooks were called, with all that it offers to this host."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...]
    state: PluginState
    problem: str | None = None
    providers: tuple[ClientTelemetry | ClientTelemetryExporterProvider, ...] = ()
    enrichers: tuple[Enricher, ...] = ()
    forwarders: Mapping[str, Forwarder] = field(default_factory=dict)
    """Not started yet. By name: the plugin's own, or ``<plugin>.<name>`` for each of several."""
    quota_callbacks: tuple[ClientQuotaCallback, ...] = ()
    companions: tuple[Companion, ...] = ()
    forwarder_settings: ForwarderSettings | None = None
    """The host's keys of the table; None when the plugin has no forwarder hook."""


class HostPluginManager(pluggy.PluginManager):
    """pluggy's manager plus the memory of what was found and what failed."""

    def __init__(self) -> None:
        super().__init__(GROUP)
        self.add_hookspecs(hookspecs)
        self.installed: dict[str, InstalledPlugin] = {}

    def add(self, name: str, plugin: object, distribution: str, version: str, builtin: bool = False) -> None:
        """Register a plugin that is already imported.

        Raises:
            ValueError: The name or the object is taken.
            PluginValidationError: It implements an unknown hook or asks for an unknown argument.
        """
        try:
            self.register(plugin, name)
            self.refuse_unknown_hooks(plugin)
        except Exception:
            if self.get_plugin(name) is plugin:
                self.unregister(name=name)
            raise
        hooks = tuple(sorted(caller.name for caller in self.get_hookcallers(plugin) or ()))
        self.installed[name] = InstalledPlugin(
            name=name, distribution=distribution, version=version, hooks=hooks, builtin=builtin
        )

    def refuse_unknown_hooks(self, plugin: object) -> None:
        """pluggy's own `check_pending` does not tell one plugin from another."""
        for caller in self.get_hookcallers(plugin) or ():
            if not caller.has_spec():
                raise pluggy.PluginValidationError(plugin, f"unknown hook {caller.name}")

    def load(self, entry_point: EntryPoint) -> None:
        """Import and register one entry point; what goes wrong is kept in `installed`."""
        name = entry_point.name
        distribution, version = origin(entry_point)
        try:
            self.add(name, entry_point.load(), distribution, version)
        except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything
            problem = f"{type(error).__name__}: {error}"
            log.warning("plugin cannot be loaded", extra={"plugin": name, "problem": problem})
            if name in self.installed:
                name = f"{name} ({distribution})"
            self.installed[name] = InstalledPlugin(
                name=name, distribution=distribution, version=version, problem=problem
            )

    def offers(self, name: str, hook: str, config: PluginConfig) -> tuple[object, ...]:
        """Call one hook of one plugin.

        Raises:
            ConfigError: The plugin refuses its table, raises something else, or offers what it may not.
        """
        plugin = self.get_plugin(name)
        others = [other for other in self.get_plugins() if other is not plugin]
        try:
            found = tuple(self.subset_hook_caller(hook, others)(config=config))
        except ConfigError:
            raise
        except (Exception, SystemExit) as error:
            raise ConfigError(config.path, f"{hook} raised {type(error).__name__}: {error}") from error
        for offer in found:
            if not isinstance(offer, OFFERS[hook]):
                expected = " or ".join(kind.__name__ for kind in OFFERS[hook])
                raise ConfigError(config.path, f"{hook} returned {type(offer).__name__}, expected {expected}")
        return found


def origin(entry_point: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution behind an entry point; damaged metadata give ``unknown``."""
    distribution = entry_point.dist
    if distribution is None:
        return "unknown", "unknown"
    fields = distribution.metadata.json
    return str(fields.get("name", "unknown")), str(fields.get("version", "unknown"))


def load_plugins() -> HostPluginManager:
    """Find and import what is installed. Never fails: look at ``installed[...].problem``."""
    manager = HostPluginManager()
    if os.environ.get(TRACE_VARIABLE) == "1":
        trace(manager)
    for name, plugin in BUILTIN.items():
        manager.add(name, plugin, GROUP, odradek.__version__, builtin=True)
    for entry_point in sorted(entry_points(group=GROUP), key=lambda found: found.name):
        manager.load(entry_point)
    return manager


def activate(
    manager: HostPluginManager,
    tables: Mapping[str, Mapping[str, object]],
    requested: AbstractSet[str] = frozenset(),
) -> list[ActivePlugin]:
    """Call the hooks of every installed plugin, in the order of their names.

    Args:
        manager: From `load_plugins`.
        tables: ``[plugins.<name>]`` of the configuration; tables inside a table may be nested or dotted.
        requested: Names of ``--plugin``. They have to be there and to offer something, and win over
            ``enabled = false``.

    Raises:
        ConfigError: A table or a request that cannot be honored.
    """
    for name in sorted(tables):
        refuse_missing(manager, name, f"plugins.{name}")
    for name in sorted(requested):
        refuse_missing(manager, name, f"--plugin {name}")
    return [
        activated(manager, manager.installed[name], tables.get(name), name in requested)
        for name in sorted(manager.installed)
    ]


def refuse_missing(manager: HostPluginManager, name: str, path: str) -> None:
    """Someone named it, so it has to be installed and in order."""
    plugin = manager.installed.get(name)
    if plugin is None:
        hint = f"; try pip install 'odradek[{name}]'" if name in EXTRAS else ""
        installed = ", ".join(sorted(manager.installed))
        raise ConfigError(path, f"no such plugin is installed; installed: {installed}{hint}")


def activated(
    manager: HostPluginManager, plugin: InstalledPlugin, table: Mapping[str, object] | None, wanted: bool
) -> ActivePlugin:
    """One plugin, its table read to the last key."""
    path = f"plugins.{plugin.name}"
    config = PluginConfig(path, flat(path, table or {}))
    enabled = config.boolean("enabled", default=not plugin.builtin or table is not None)
    if not enabled and not wanted:
        return described(plugin, PluginState.DISABLED)
    if plugin.problem is not None:
        if wanted or table is not None:
            raise ConfigError(path, f"the plugin of {plugin.distribution} cannot be loaded: {plugin.problem}")
        return described(plugin, PluginState.BROKEN)
    offers = {hook: manager.offers(plugin.name, hook, config) for hook in plugin.hooks}
    settings = read_settings(config) if "odradek_forwarder" in plugin.hooks else None
    config.finish()
    if wanted and not any(offers.values()):
        raise ConfigError(path, f"--plugin {plugin.name} asks for it, but with this table it offers nothing")
    state = PluginState.ACTIVE if any(offers.values()) else PluginState.IDLE
    return described(plugin, state, offers, settings)


def described(
    plugin: InstalledPlugin,
    state: PluginState,
    offers: Mapping[str, tuple[object, ...]] | None = None,
    settings: ForwarderSettings | None = None,
) -> ActivePlugin:
    """What was found plus what it offers. Each offer was held against `OFFERS`, so the types are right."""
    found = offers or {}
    return ActivePlugin(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        hooks=plugin.hooks,
        state=state,
        problem=plugin.problem,
        providers=found.get("odradek_client_telemetry", ()),  # type: ignore[arg-type]
        enrichers=found.get("odradek_enricher", ()),  # type: ignore[arg-type]
        forwarders=named_forwarders(plugin.name, found.get("odradek_forwarder", ())),
        quota_callbacks=found.get("odradek_quota_callback", ()),  # type: ignore[arg-type]
        companions=found.get("odradek_companion", ()),  # type: ignore[arg-type]
        forwarder_settings=settings,
    )


def named_forwarders(plugin: str, offers: Sequence[object]) -> dict[str, Forwarder]:
    """All that a plugin offered, by the name that its metrics and its committed offsets carry.

    Raises:
        ConfigError: One of several is no forwarder, or its name makes none.
    """
    found: dict[str, Forwarder] = {}
    for offer in offers:
        for name, forwarder in offer.items() if isinstance(offer, Mapping) else [("", offer)]:
            if not isinstance(forwarder, Forwarder) or (name and not FORWARDER_NAME.fullmatch(str(name))):
                problem = f"odradek_forwarder returned {name!r}: {type(forwarder).__name__}"
                raise ConfigError(f"plugins.{plugin}", f"{problem}, expected name: Forwarder")
            found[f"{plugin}.{name}" if name else plugin] = forwarder
    return found


def quota_callback(plugins: Sequence[ActivePlugin]) -> tuple[str, ClientQuotaCallback] | None:
    """The plugin that decides on client quotas, by name; None when Kafka's own rules do.

    Raises:
        ConfigError: More than one wants to.
    """
    found = [(plugin.name, callback) for plugin in plugins for callback in plugin.quota_callbacks]
    if len(found) > 1:
        names = ", ".join(name for name, _ in found[:-1])
        raise ConfigError(f"plugins.{found[-1][0]}", f"client quotas are decided on by {names} already")
    return found[0] if found else None


def flat(path: str, table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """``{"headers": {"x": "1"}}`` as ``{"headers.x": "1"}``: TOML nests a dotted key that is not quoted.

    Raises:
        ConfigError: One key is there in both spellings.
    """
    rows: dict[str, object] = {}
    for key, value in table.items():
        found = flat(path, value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
        for name in found.keys() & rows.keys():
            raise ConfigError(f"{path}.{name}", "given twice, quoted and not quoted")
        rows |= found
    return rows


def trace(manager: HostPluginManager) -> None:
    """Print each hook call with who implements it and the kind of answer."""

    def before(hook: str, implementations: Sequence[pluggy.HookImpl], arguments: Mapping[str, Any]) -> None:
        config = arguments.get("config")
        path = config.path if isinstance(config, PluginConfig) else ""
        names = ", ".join(implementation.plugin_name for implementation in implementations)
        sys.stderr.write(f"{TRACE_VARIABLE}: {hook}({path}) implemented by: {names}\n")

    def after(
        outcome: pluggy.Result[Any],
        hook: str,
        implementations: Sequence[pluggy.HookImpl],
        arguments: Mapping[str, Any],
    ) -> None:
        answer = outcome.exception if outcome.exception is not None else outcome.get_result()
        kinds = [type(item).__name__ for item in (answer if isinstance(answer, list) else [answer])]
        sys.stderr.write(f"{TRACE_VARIABLE}: {hook} -> {', '.join(kinds) or 'nothing'}\n")

    manager.add_hookcall_monitoring(before, after)
