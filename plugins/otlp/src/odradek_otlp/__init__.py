"""Client metrics to an OpenTelemetry endpoint, over HTTP/protobuf or gRPC."""

from __future__ import annotations

import os

from odradek.plugin import Forwarder, PluginConfig, hookimpl
from odradek_otlp.otlp_settings import read_settings

__version__ = "0.1.0"


@hookimpl
def odradek_forwarder(config: PluginConfig) -> Forwarder | None:
    """Reads the table and the ``OTEL_EXPORTER_OTLP_*`` variables; None when neither has an endpoint.

    Raises:
        ConfigError: A key or a variable makes no sense; the error names which.
    """
    settings = read_settings(config, os.environ)
    if settings is None:
        return None
    # A host where the plugin is installed but idle does not pay for these imports.
    from odradek_otlp.otlp_forwarder import OtlpForwarder

    return OtlpForwarder(settings, user_agent=f"odradek-otlp/{__version__}")
