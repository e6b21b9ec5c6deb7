"""Installed plugins: found by entry point, imported one by one, each given its own table and nothing else.

There is no global manager: `load_plugins` returns a new one. A distribution that cannot be imported is listed
with its error; it stops the start only if the configuration names it. A start may give
other plugins.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

import odradek
from odradek.hosting import stdout_receiver
from odradek.hosting.hook_check import check_hooks, load_problem
from odradek.hosting.offers import HOOKS
from odradek.hosting.requested_plugins import loaded, usable
from odradek.plugin import hookspecs
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.interface_check import check_interface
from odradek.plugin.later import Invalidates
from odradek.plugin.places import place_of, place_of_definition
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import Reloadable

log = logging.getLogger(__name__)

GROUP = "odradek"
"""The entry point group, pluggy's project name and the distribution of the host."""
GIVEN = "not installed"
"""In the place of a distribution."""
TRACE_VARIABLE = "ODRADEK_TRACE_PLUGINS"
"""If set to 1, each hook call prints a line to stderr: names and types only, because tables hold secrets."""
NONE: Mapping[str, object] = {}
BUILTIN = {"stdout": stdout_receiver}
"""Plugins inside the host; inactive until the configuration names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """One entry point of the group, as found."""

    name: str
    distribution: str
    version: str
    hooks: tuple[str, ...] = ()
    builtin: bool = False
    problem: str | None = None
    """Why the plugin is broken; None if it is not."""
    rivals: tuple[str, ...] = ()
    """Other distributions with a plugin of this name."""


class HostPluginManager(pluggy.PluginManager):
    """pluggy's manager, with a record of the plugins found and the imports that failed."""

    def __init__(self) -> None:
        super().__init__(GROUP)
        self.add_hookspecs(hookspecs)
        self.installed: dict[str, InstalledPlugin] = {}
        self.loading = ""
        """The plugin that is being imported."""

    def add(self, name: str, plugin: object, distribution: str, version: str, builtin: bool = False) -> None:
        """Register an imported plugin.

        Raises:
            ValueError: The name or the object is already registered.
            WrongPlugin: It is a class that cannot be called, needs a newer host, or has wrong hooks.
        """
        plugin = usable(plugin)
        check_hooks(self, plugin)
        self.register(plugin, name)
        hooks = tuple(sorted(caller.name for caller in self.get_hookcallers(plugin) or ()))
        self.installed[name] = InstalledPlugin(
            name=name, distribution=distribution, version=version, hooks=hooks, builtin=builtin
        )

    def give(self, name: str, source: object) -> None:
        """Register a plugin that is not installed.

        Raises:
            ConfigError: It cannot be loaded or called, has no hook, or has the name of an installed one.
        """
        path = str(source) if isinstance(source, Path) else f"plugins.{name}"
        self.loading = name
        plugin = loaded(name, source)
        self.loading = ""
        if name in self.installed:
            there = self.installed[name]
            other = f"{there.distribution} {there.version}"
            raise ConfigError(
                path, f"{other} is installed with the name {name}; rename this one, or uninstall that one"
            )
        try:
            self.add(name, plugin, GIVEN, "")
        except Exception as error:
            raise ConfigError(path, " ".join(str(error).split())) from error

    def give_all(self, requested: Mapping[str, object]) -> None:
        """Register those that are not installed.

        Raises:
            ConfigError: See `give`.
        """
        for name, source in requested.items():
            if source is not None:
                self.give(name, source)

    def modules(self) -> dict[str, str]:
        """The names of the plugins that are not built in, by the modules of their hooks."""
        found = (name for name, each in self.installed.items() if each.hooks and not each.builtin)
        return {module_of(self.get_plugin(name)): name for name in found}

    def load(self, entry_point: EntryPoint) -> None:
        """Import and register one entry point; record a failure in `installed`."""
        name = entry_point.name
        distribution, version = origin(entry_point)
        if name in self.installed:
            first = self.installed[name]
            rivals = (*first.rivals, distribution)
            self.installed[name] = replace(first, rivals=rivals)
            return
        self.loading = name
        try:
            self.add(name, entry_point.load(), distribution, version)
        except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything
            problem = load_problem(error, entry_point)
            log.warning("plugin %s cannot be loaded: %s", name, problem)
            self.installed[name] = InstalledPlugin(
                name=name, distribution=distribution, version=version, problem=problem
            )
        self.loading = ""

    def load_installed(self) -> None:
        """Find and import all installed plugins. Never fails: see ``installed[...].problem``."""
        if os.environ.get(TRACE_VARIABLE) == "1":
            trace(self)
        for name, plugin in BUILTIN.items():
            self.add(name, plugin, GROUP, odradek.__version__, builtin=True)
        for entry_point in sorted(entry_points(group=GROUP), key=lambda found: found.name):
            self.load(entry_point)

    def owner(self, package: str) -> str:
        """The plugin that is in a package, or that is being imported; empty if there is none."""
        owners = (
            name for name, plugin in self.list_name_plugin() if module_of(plugin).partition(".")[0] == package
        )
        return next(owners, self.loading)

    def offers(self, name: str, hook: str, config: PluginConfig) -> tuple[object, ...]:
        """Call one hook of one plugin.

        Raises:
            ConfigError: The plugin refuses its table, raises another error, or returns an object without the
                methods that the host calls.
        """
        plugin = self.get_plugin(name)
        others = [other for other in self.get_plugins() if other is not plugin]
        try:
            found = tuple(self.subset_hook_caller(hook, others)(config=config))
        except ConfigError:
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            told = f"{hook} raised {described(error)}{place_of(error)}; {remedy(error, config)}"
            raise ConfigError(config.path, told) from error
        where = place_of_definition(getattr(plugin, hook))
        for offer in found:
            check_interface(offer, HOOKS[hook].types, config.path, hook, where)
            for optional in (Reloadable, Invalidates):
                if isinstance(offer, optional):
                    check_interface(offer, (optional,), config.path, hook)
        return found


def missing_keys(config: PluginConfig) -> str:
    """The keys that a hook has read and the table lacks; empty if there are none."""
    return ", ".join(sorted(config.known - config.values.keys() - {"enabled"}))


def remedy(error: BaseException, config: PluginConfig) -> str:
    """Advice to the author of a hook that raises."""
    if isinstance(error, KeyboardInterrupt):
        return "it took too long"
    missing = missing_keys(config)
    if missing and isinstance(error, AttributeError | TypeError):
        return f"the table has no {missing}: give it a default, or raise ConfigError"
    return "raise ConfigError for a wrong table"


def module_of(plugin: object) -> str:
    """The name of a module, or of that of an object's class."""
    return plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__


def origin(entry_point: EntryPoint) -> tuple[str, str]:
    """Name and version of an entry point's distribution; ``unknown`` if its metadata is damaged."""
    distribution = entry_point.dist
    if distribution is None:
        return "unknown", "unknown"
    fields = distribution.metadata.json
    return str(fields.get("name", "unknown")), str(fields.get("version", "unknown"))


def load_plugins(requested: Mapping[str, object] = NONE) -> HostPluginManager:
    """A new manager with all installed plugins.

    Args:
        requested: Those of `by_name`. The ones that are not installed are loaded, too.

    Raises:
        ConfigError: One that is not installed is not usable.
    """
    manager = HostPluginManager()
    manager.load_installed()
    manager.give_all(requested)
    return manager


def trace(manager: HostPluginManager) -> None:
    """Print each hook call with its implementations and the types of their answers."""

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
