"""Everything that a plugin may import.

Importing this room is cheap: the names that need a library are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from odradek.plugin.authorizer import (
    AclOperation,
    AclPermission,
    Action,
    Authorizer,
    Decision,
    PatternType,
    ResourceType,
)
from odradek.plugin.client_quota import (
    ABSENT,
    DEFAULT,
    ClientQuotaEntity,
    ClientQuotaType,
    ConfigEntityType,
)
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.context import UNKNOWN, ClientTelemetryContext, ConnectionContext, RequestContext
from odradek.plugin.context_labels import CLIENT_LABELS, CONTEXT_LABELS, DEFAULT_LABELS, context_labels
from odradek.plugin.hookspecs import hookimpl
from odradek.plugin.label_names import distinct_names, label_name
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.principal_builder import AuthenticationContext, PrincipalBuilder
from odradek.plugin.protobuf_bytes import NotOtlp, delimited
from odradek.plugin.protocols import (
    ClientQuotaCallback,
    ClientTelemetry,
    ClientTelemetryExporter,
    ClientTelemetryExporterProvider,
    ClientTelemetryReceiver,
    Companion,
    CountsRefusedPoints,
    Enricher,
    Forwarder,
    Listens,
    Origin,
    Reject,
    Reloadable,
    RenamesLabels,
    Retry,
    TelemetryRecord,
)
from odradek.plugin.source import Intake, Receipt, Refused, Source
from odradek.plugin.telemetry_topic import MalformedTelemetry, decode_record, encode_headers, record_key
from odradek.plugin.token_file import TokenError, token_path, with_token_file
from odradek.plugin.topic_format import TopicFormat
from odradek.plugin.topic_writer import NotWritten, TopicWriter

if TYPE_CHECKING:
    from odradek.plugin.labeled_payload import labeler
    from odradek.plugin.metrics_data import (
        MergedResourceMetrics,
        ShallowResourceMetrics,
        ShallowScopeMetrics,
        merged_resources,
        merged_scopes,
        metric_name,
        resource_metrics,
        shallow_resource_metrics,
        shallow_scope_metrics,
    )
    from odradek.plugin.otlp_json import metrics_of_json
    from odradek.plugin.private_messages import message_classes
    from odradek.plugin.push_bytes import body_start
    from odradek.plugin.sender_records import Sender, data_points, otlp_records
    from odradek.plugin.topic_messages import decode_message

__all__ = [
    "ABSENT",
    "CLIENT_LABELS",
    "CONTEXT_LABELS",
    "DEFAULT",
    "DEFAULT_LABELS",
    "UNKNOWN",
    "AclOperation",
    "AclPermission",
    "Action",
    "AuthenticationContext",
    "Authorizer",
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
    "CountsRefusedPoints",
    "Decision",
    "Enricher",
    "Forwarder",
    "Intake",
    "Listens",
    "MalformedTelemetry",
    "MergedResourceMetrics",
    "NotOtlp",
    "NotWritten",
    "Origin",
    "PatternType",
    "PluginConfig",
    "PrincipalBuilder",
    "Receipt",
    "Refused",
    "Reject",
    "Reloadable",
    "RenamesLabels",
    "RequestContext",
    "ResourceType",
    "Retry",
    "Sender",
    "ShallowResourceMetrics",
    "ShallowScopeMetrics",
    "Source",
    "TelemetryRecord",
    "TokenError",
    "TopicFormat",
    "TopicWriter",
    "body_start",
    "context_labels",
    "data_points",
    "decode_message",
    "decode_record",
    "delimited",
    "distinct_names",
    "encode_headers",
    "hookimpl",
    "label_name",
    "labeler",
    "merged_resources",
    "merged_scopes",
    "message_classes",
    "metric_name",
    "metrics_of_json",
    "otlp_records",
    "record_key",
    "resource_metrics",
    "shallow_resource_metrics",
    "shallow_scope_metrics",
    "token_path",
    "with_token_file",
]

ON_FIRST_USE = {
    "MergedResourceMetrics": "metrics_data",
    "ShallowResourceMetrics": "metrics_data",
    "ShallowScopeMetrics": "metrics_data",
    "Sender": "sender_records",
    "body_start": "push_bytes",
    "data_points": "sender_records",
    "decode_message": "topic_messages",
    "labeler": "labeled_payload",
    "merged_resources": "metrics_data",
    "merged_scopes": "metrics_data",
    "message_classes": "private_messages",
    "metric_name": "metrics_data",
    "metrics_of_json": "otlp_json",
    "otlp_records": "sender_records",
    "resource_metrics": "metrics_data",
    "shallow_resource_metrics": "metrics_data",
    "shallow_scope_metrics": "metrics_data",
}
"""The module of each name that needs protobuf, or the libraries of compression."""


def __getattr__(name: str) -> Any:
    if name not in ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{ON_FIRST_USE[name]}"), name)
