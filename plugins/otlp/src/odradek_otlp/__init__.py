"""Forwards client metrics to OpenTelemetry endpoints, and takes the metrics of other senders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version

from odradek.plugin import Forwarder, PluginConfig, Source, hookimpl
from odradek_otlp.otlp_table import read_destinations

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
"""gRPC reads it when it is imported. By default it writes a line for each handshake that fails."""


@hookimpl
def odradek_forwarder(config: PluginConfig) -> Forwarder | Mapping[str, Forwarder] | None:
    """Read the table and the ``OTEL_EXPORTER_OTLP_*`` variables; None if neither has an endpoint.

    Raises:
        ConfigError: A key or a variable has an invalid value; the error names it.
    """
    destinations = read_destinations(config, os.environ)
    if not destinations:
        return None
    # Imported here, so that a host with an installed but unconfigured plugin does not pay for them.
    from odradek_otlp.otlp_forwarder import OtlpForwarder

    user_agent = f"odradek-otlp/{version('odradek-otlp')}"
    forwarders: dict[str, Forwarder] = {}
    for name, settings in destinations.items():
        forwarders[name] = OtlpForwarder(settings, user_agent)
        if settings.totals is not None:
            from odradek.temporality import CumulativeForwarder

            forwarders[name] = CumulativeForwarder(forwarders[name], settings.totals)
    return forwarders.get("", forwarders)


@hookimpl
def odradek_source(config: PluginConfig) -> Source | None:
    """Read the table ``source``; None if it has no listener.

    Raises:
        ConfigError: A key has an invalid value; the error names it.
    """
    if all(config.text(f"source.{protocol}.listener") is None for protocol in ("http", "grpc")):
        return None
    from odradek_otlp.otlp_source import OtlpSource
    from odradek_otlp.source_settings import read_source_settings

    return OtlpSource(read_source_settings(config))
