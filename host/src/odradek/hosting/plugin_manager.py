"""Installed plugins: found by entry point, imported one by one, each given its own table and nothing else.

There is no global manager: `load_plugins` returns a new one. A distribution that cannot be imported is listed
with its error; it stops the start only if the configuration names it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy

import odradek
from odradek.hosting import stdout_receiver
from odradek.hosting.offers import HOOKS
from odradek.plugin import hookspecs
from odradek.plugin.config import ConfigError, PluginConfig, nearest
from odradek.plugin.interface_check import check_interface
from odradek.plugin.later import Invalidates
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import Reloadable

log = logging.getLogger(__name__)

GROUP = "odradek"
"""The entry point group, pluggy's project name and the distribution of the host."""
TRACE_VARIABLE = "ODRADEK_TRACE_PLUGINS"
"""If set to 1, each hook call prints a line to stderr: names and types only, because tables hold secrets."""
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


class HostPluginManager(pluggy.PluginManager):
    """pluggy's manager, with a record of the plugins found and the imports that failed."""

    def __init__(self) -> None:
        super().__init__(GROUP)
        self.add_hookspecs(hookspecs)
        self.installed: dict[str, InstalledPlugin] = {}

    def add(self, name: str, plugin: object, distribution: str, version: str, builtin: bool = False) -> None:
        """Register an imported plugin.

        Raises:
            ValueError: The name or the object is already registered.
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

    def modules(self) -> dict[str, str]:
        """The names of the plugins that are not built in, by the modules of their hooks."""
        found = (name for name, each in self.installed.items() if each.hooks and not each.builtin)
        return {module_of(self.get_plugin(name)): name for name in found}

    def refuse_unknown_hooks(self, plugin: object) -> None:
        """Refuse hooks without a specification. pluggy's `check_pending` checks all plugins, not one."""
        for caller in self.get_hookcallers(plugin) or ():
            if not caller.has_spec():
                close = nearest(caller.name, HOOKS)
                hint = f"did you mean {close}?" if close else f"known hooks: {', '.join(sorted(HOOKS))}"
                raise pluggy.PluginValidationError(plugin, f"unknown hook {caller.name}; {hint}")

    def load(self, entry_point: EntryPoint) -> None:
        """Import and register one entry point; record a failure in `installed`."""
        name = entry_point.name
        distribution, version = origin(entry_point)
        try:
            self.add(name, entry_point.load(), distribution, version)
        except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything
            problem = described(error)
            log.warning("plugin %s cannot be loaded", name, extra={"problem": problem})
            if name in self.installed:
                name = f"{name} ({distribution})"
            self.installed[name] = InstalledPlugin(
                name=name, distribution=distribution, version=version, problem=problem
            )

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
        except (Exception, SystemExit) as error:
            raise ConfigError(config.path, f"{hook} raised {described(error)}") from error
        for offer in found:
            check_interface(offer, HOOKS[hook].types, config.path, hook)
            for optional in (Reloadable, Invalidates):
                if isinstance(offer, optional):
                    check_interface(offer, (optional,), config.path, hook)
        return found


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


def load_plugins() -> HostPluginManager:
    """Find and import all installed plugins. Never fails: see ``installed[...].problem``."""
    manager = HostPluginManager()
    if os.environ.get(TRACE_VARIABLE) == "1":
        trace(manager)
    for name, plugin in BUILTIN.items():
        manager.add(name, plugin, GROUP, odradek.__version__, builtin=True)
    for entry_point in sorted(entry_points(group=GROUP), key=lambda found: found.name):
        manager.load(entry_point)
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
