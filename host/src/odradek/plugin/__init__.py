"""The interface of plugins: hooks, protocols and what they pass on.

The bytes of OTLP metrics are in `odradek.otlp`, the format of the telemetry topic in `odradek.topic`.

A plugin, which may be a module, a file, or the object or class here:

>>> from odradek.plugin import PluginConfig, hookimpl
>>> class TeamPlugin:
...     @hookimpl
...     def odradek_enricher(self, config):
...         self.separator = config.text("separator", "-")
...         return self
...     def labels(self, client_instance_id, context):
...         return {"team": context.client_id.partition(self.separator)[0]}
>>> TeamPlugin().odradek_enricher(PluginConfig("plugins.team", {})).separator
'-'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.bounds.first_use import on_first_use
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.plugin.context_labels import (
    CLIENT_LABELS,
    CLUSTER_NAME,
    CONTEXT_LABELS,
    DEFAULT_LABELS,
    context_labels,
)

if TYPE_CHECKING:
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
    from odradek.plugin.context import UNKNOWN, ClientTelemetryContext, ConnectionContext, RequestContext
    from odradek.plugin.hookspecs import hookimpl
    from odradek.plugin.label_names import distinct_names, label_name
    from odradek.plugin.later import LABELS_MISSING, Invalidates, Later
    from odradek.plugin.payload import ClientTelemetryPayload
    from odradek.plugin.principal_builder import AuthenticationContext, PrincipalBuilder
    from odradek.plugin.protocols import (
        LAG_SOURCE,
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
    from odradek.plugin.topic_writer import NotWritten, TopicWriter

API_VERSION: Final = 1
"""The version of this interface, which grows with each release that adds to it. A plugin that needs a version
says so in its attribute ``ODRADEK_API_VERSION``; an older host refuses it."""

__all__ = [
    "ABSENT",
    "API_VERSION",
    "CLIENT_LABELS",
    "CLUSTER_NAME",
    "CONTEXT_LABELS",
    "DEFAULT",
    "DEFAULT_LABELS",
    "LABELS_MISSING",
    "LAG_SOURCE",
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
    "Invalidates",
    "Later",
    "Listens",
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
    "Source",
    "TelemetryRecord",
    "TopicWriter",
    "context_labels",
    "distinct_names",
    "hookimpl",
    "label_name",
]

# A program without plugins needs only what is imported above.
__getattr__ = on_first_use(
    __name__,
    authorizer="AclOperation AclPermission Action Authorizer Decision PatternType ResourceType",
    client_quota="ABSENT DEFAULT ClientQuotaEntity ClientQuotaType ConfigEntityType",
    context="UNKNOWN ClientTelemetryContext ConnectionContext RequestContext",
    hookspecs="hookimpl",
    label_names="distinct_names label_name",
    later="LABELS_MISSING Invalidates Later",
    payload="ClientTelemetryPayload",
    principal_builder="AuthenticationContext PrincipalBuilder",
    protocols="LAG_SOURCE ClientQuotaCallback ClientTelemetry ClientTelemetryExporter "
    "ClientTelemetryExporterProvider ClientTelemetryReceiver Companion "
    "CountsRefusedPoints Enricher Forwarder Listens Origin Reject Reloadable "
    "RenamesLabels Retry TelemetryRecord",
    source="Intake Receipt Refused Source",
    topic_writer="NotWritten TopicWriter",
)
