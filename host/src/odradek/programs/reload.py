"""Reloading the configuration while the host runs (SIGHUP): subscriptions, quotas, certificates, and the
tables of plugins that can take a new one. Everything else needs a restart.

Everything is checked before anything changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from odradek.hosting.active_plugin import ActivePlugin, PluginState, activated, refuse_missing
from odradek.hosting.offers import ENRICHER, FORWARDER
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import Reloadable
from odradek.programs.certificates import Certificates
from odradek.programs.config import HostConfig
from odradek.programs.ground import Ground
from odradek.programs.plugins import Plugins
from odradek.programs.pushes import Pushes
from odradek.settings.toml_file import flatten
from odradek.telemetry.enrichers import try_enricher
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Change:
    """The new table of one plugin."""

    name: str
    keys: list[str]
    """The changed keys, from the top of the file."""
    pairs: list[tuple[Reloadable, object]] | None
    """Each object of the plugin with its replacement; None if the table needs a restart."""


class Reloader:
    """Reads the configuration of a program again.

    Args:
        config: At the start.
        plugins: Of the program.
        ground: Has its quotas.
        pushes: Have its subscriptions.
        certificates: Of its listeners.
    """

    def __init__(
        self, config: HostConfig, plugins: Plugins, ground: Ground, pushes: Pushes, certificates: Certificates
    ) -> None:
        self.config = config
        """In force."""
        self.plugins = plugins
        self.file_quotas = ground.file_quotas
        self.file_subscriptions = pushes.file_subscriptions
        self.telemetry = pushes.manager
        self.certificates = certificates

    def reload(self, read: Callable[[], HostConfig]) -> None:
        """Read the configuration again, apply what can be applied, and log the rest.

        Args:
            read: Reads the configuration.
        """
        try:
            config = read()
            changes = self.plugin_changes(config)
            self.file_subscriptions.check(config.subscriptions)
            self.file_quotas.check(config.client_quotas)
            subscriptions = self.file_subscriptions.apply(config.subscriptions)
            self.file_quotas.apply(config.client_quotas)
        except (ConfigError, ApiError) as error:
            log.error("configuration not reloaded, the old one stays", extra={"problem": str(error)})
            return
        self.certificates.reload(config)
        taken = [change.name for change in changes if change.pairs is not None and self.take(change)]
        self.config = replace(
            self.config,
            subscriptions=config.subscriptions,
            client_quotas=config.client_quotas,
            plugins=merged(self.config.plugins, config.plugins, taken),
            tls=self.certificates.config.tls,
            listener_values=self.certificates.config.listener_values,
        )
        log.info("configuration reloaded", extra={"subscriptions": subscriptions, "plugins": taken})
        restart = changed_settings(self.config, config)
        restart += [key for change in changes if change.name not in taken for key in change.keys]
        if restart:
            log.warning(
                "changed keys need a restart; --check tells whether they are right", extra={"keys": restart}
            )

    def plugin_changes(self, config: HostConfig) -> list[Change]:
        """The plugins whose tables differ from those in force.

        Raises:
            ConfigError: A plugin refuses its table, or is not installed.
        """
        old, new = self.config.plugins, config.plugins
        changes = []
        for name in sorted(old.keys() | new.keys()):
            before, after = flatten(old.get(name, {})), flatten(new.get(name, {}))
            if before == after and (name in old) is (name in new):
                continue
            refuse_missing(self.plugins.manager, name, f"plugins.{name}")
            differing = sorted(key for key in before | after if before.get(key) != after.get(key))
            keys = [f"plugins.{name}.{key}" for key in differing] or [f"plugins.{name}"]
            changes.append(Change(name, keys, self.replacements(name, new.get(name))))
        return changes

    def replacements(self, name: str, table: Table | None) -> list[tuple[Reloadable, object]] | None:
        """The objects of a plugin with those that its hooks return for another table; None if one cannot be
        reloaded, or if the plugin would offer something else.

        Raises:
            ConfigError: The plugin refuses the table.
        """
        plugin = next(each for each in self.plugins.all if each.name == name)
        objects = offered_objects(plugin)
        olds = [each for each in objects.values() if isinstance(each, Reloadable)]
        if not olds or len(olds) < len(objects):
            return None
        wanted = name in self.config.requested_plugins
        found = activated(self.plugins.manager, plugin.installed, table, wanted)
        for enricher in found.offered(ENRICHER):
            try_enricher(name, enricher)
        news = offered_objects(found)
        alike = [type(each) for each in news.values()] == [type(each) for each in objects.values()]
        if found.state is not PluginState.ACTIVE or not alike or news.keys() != objects.keys():
            return None
        if found.forwarder_settings != plugin.forwarder_settings:
            return None
        return list(zip(olds, news.values(), strict=True))

    def take(self, change: Change) -> bool:
        """Let a plugin take its new table; return whether it did."""
        try:
            for old, new in change.pairs or ():
                old.reload(new)
        except Exception:
            log.exception(
                "plugin %s cannot take its new table, restart the host",
                change.name,
                extra={"plugin": change.name},
            )
            return False
        self.plugins.enrichers.changes.note(None)
        return True


def changed_settings(old: HostConfig, new: HostConfig) -> list[str]:
    """The keys whose values differ."""
    before = {key: value.text for key, value in old.start_values.items()}
    after = {key: value.text for key, value in new.start_values.items()}
    return sorted(key for key in before | after if before.get(key) != after.get(key))


def merged(old: Mapping[str, Table], new: Mapping[str, Table], taken: list[str]) -> dict[str, Table]:
    """The tables in force: the new ones of the plugins that took theirs."""
    kept = {name: table for name, table in old.items() if name not in taken}
    return kept | {name: table for name, table in new.items() if name in taken}


def offered_objects(plugin: ActivePlugin) -> dict[str, object]:
    """All objects that the hooks of a plugin returned, each with a name."""
    found: dict[str, object] = {
        f"{hook} {number}": offer
        for hook, offers in plugin.offers.items()
        if hook != FORWARDER.name
        for number, offer in enumerate(offers)
    }
    return {**found, **plugin.forwarders}
