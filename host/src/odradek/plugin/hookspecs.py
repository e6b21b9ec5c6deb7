"""The hooks by which an installed distribution joins the host (entry points in the group ``odradek``).

Each hook is called once per host for each plugin, with that plugin's own table of the configuration,
``[plugins.<entry point name>]``, before the first connection.
"""

from __future__ import annotations

from collections.abc import Mapping

import pluggy

from odradek.plugin.authorizer import Authorizer
from odradek.plugin.config import PluginConfig
from odradek.plugin.principal_builder import PrincipalBuilder
from odradek.plugin.protocols import (
    ClientQuotaCallback,
    ClientTelemetry,
    ClientTelemetryExporterProvider,
    Companion,
    Enricher,
    Forwarder,
)
from odradek.plugin.source import Source
from odradek.plugin.topic_writer import TopicWriter

hookspec = pluggy.HookspecMarker("odradek")
hookimpl = pluggy.HookimplMarker("odradek")


@hookspec
def odradek_client_telemetry(
    config: PluginConfig,
) -> ClientTelemetry | ClientTelemetryExporterProvider | None:
    """Offer a receiver or an exporter, which is called with each accepted push.

    Args:
        config: The plugin's table.

    Returns:
        The provider, or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_enricher(config: PluginConfig) -> Enricher | None:
    """Offer labels for the metrics of each client instance.

    Args:
        config: The plugin's table.

    Returns:
        The enricher, or None to stay out. If two set the same label, the plugin whose name sorts last wins.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_forwarder(config: PluginConfig) -> Forwarder | Mapping[str, Forwarder] | None:
    """Offer to deliver accepted pushes to another system, in batches.

    Args:
        config: The plugin's table.

    Returns:
        A forwarder that has not been started; or several by name, each of which gets every push
        independently of the others, as ``<plugin>.<name>``; or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_source(config: PluginConfig) -> Source | None:
    """Offer to bring telemetry records in from elsewhere.

    They take the way of a push: they are labeled, stored, and given to receivers and forwarders.

    Args:
        config: The plugin's table.

    Returns:
        A source that does not run yet, or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_topic_writer(config: PluginConfig) -> TopicWriter | None:
    """Offer to write accepted pushes to the telemetry topic of a cluster.

    The host uses it if ``telemetry.durability`` is ``kafka``: it keeps no telemetry topic of its own, and
    answers a push when the cluster has acknowledged the record.

    Args:
        config: The plugin's table.

    Returns:
        A writer that has not been started, or None to stay out. A host has at most one.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_quota_callback(config: PluginConfig) -> ClientQuotaCallback | None:
    """Offer to decide which clients share a quota, and its limit.

    The callback replaces Kafka's rules about users and client ids. Every request asks it for its tags.

    Args:
        config: The plugin's table.

    Returns:
        The callback, or None to stay out. A host has at most one; with two it does not start.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Offer a process that the host runs beside itself.

    Use one for work that is too heavy for the host's process, or that must not fail together with the host.
    The process connects as an ordinary client.

    Args:
        config: The plugin's table.

    Returns:
        The companion, or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_authorizer(config: PluginConfig) -> Authorizer | None:
    """Offer to decide what clients may do.

    The host asks it if ``authorizer.class.name`` is the name of the plugin.

    Args:
        config: The plugin's table.

    Returns:
        The authorizer, or None to stay out. The host does not start with one that ``authorizer.class.name``
        does not name.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_principal_builder(config: PluginConfig) -> PrincipalBuilder | None:
    """Offer to build the principals of clients.

    Args:
        config: The plugin's table.

    Returns:
        The builder, or None to stay out. A host has at most one; with two it does not start.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """
