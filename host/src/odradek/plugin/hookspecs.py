"""The hooks by which an installed distribution joins the host (entry points in the group ``odradek``).

Each hook is called once per host for each plugin, with that plugin's own table of the configuration,
``[plugins.<entry point name>]``, before the first connection.
"""

from __future__ import annotations

from collections.abc import Mapping

import pluggy

from odradek.plugin.config import PluginConfig
from odradek.plugin.protocols import (
    ClientQuotaCallback,
    ClientTelemetry,
    ClientTelemetryExporterProvider,
    Companion,
    Enricher,
    Forwarder,
)

hookspec = pluggy.HookspecMarker("odradek")
hookimpl = pluggy.HookimplMarker("odradek")


@hookspec
def odradek_client_telemetry(
    config: PluginConfig,
) -> ClientTelemetry | ClientTelemetryExporterProvider | None:
    """Offer a receiver or an exporter that sees each push as it is accepted.

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
        The enricher, or None to stay out. Of two that set the same label, the later plugin by name wins.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_forwarder(config: PluginConfig) -> Forwarder | Mapping[str, Forwarder] | None:
    """Offer to carry accepted pushes to another system, in batches.

    Args:
        config: The plugin's table.

    Returns:
        A forwarder that has not been started; or several by name, each of which gets every push and is
        driven by itself, as ``<plugin>.<name>``; or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_quota_callback(config: PluginConfig) -> ClientQuotaCallback | None:
    """Offer to decide who shares a quota and how much it is.

    It takes the place of Kafka's rules about users and client ids; every request asks it for its tags.

    Args:
        config: The plugin's table.

    Returns:
        The callback, or None to stay out. One host has at most one; with two it does not start.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """


@hookspec
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Offer a process that the host runs beside itself.

    For what is too heavy for the host, or may not fail with it. The process is a client like any other.

    Args:
        config: The plugin's table.

    Returns:
        What to start, or None to stay out.

    Raises:
        ConfigError: The table is not usable. The host does not start.
    """
