"""All that a plugin may import."""

from odradek.plugin.client_quota import (
    ABSENT,
    DEFAULT,
    ClientQuotaEntity,
    ClientQuotaType,
    ConfigEntityType,
)
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.context import UNKNOWN, ClientTelemetryContext, ConnectionContext, RequestContext
from odradek.plugin.hookspecs import hookimpl
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import (
    ClientQuotaCallback,
    ClientTelemetry,
    ClientTelemetryExporter,
    ClientTelemetryExporterProvider,
    ClientTelemetryReceiver,
    Companion,
    Enricher,
    Forwarder,
    Reject,
    Retry,
    TelemetryRecord,
)
from odradek.plugin.telemetry_topic import MalformedTelemetry, decode_record, encode_headers, record_key

__all__ = [
    "ABSENT",
    "DEFAULT",
    "UNKNOWN",
    "ClientQuotaCallback",
    "ClientQuotaEntity",
    "ClientQuotaType",
    "ClientTelemetry",
    "ClientTelemetryContext",
    "ClientTelemetryExporter",
    "ClientTelemetryExporterProvider",
    "ClientTelemetryPayload",
    "ClientTelemetryReceiver",
    "Companion",
    "ConfigEntityType",
    "ConfigError",
    "ConnectionContext",
    "Enricher",
    "Forwarder",
    "MalformedTelemetry",
    "PluginConfig",
    "Reject",
    "RequestContext",
    "Retry",
    "TelemetryRecord",
    "decode_record",
    "encode_headers",
    "hookimpl",
    "record_key",
]
