"""The hooks through which a plugin offers something to the host, and the types that each hook may return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from odradek.plugin.authorizer import Authorizer
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

T = TypeVar("T")


@dataclass(frozen=True)
class Hook(Generic[T]):
    """One hook; ``T`` is the type of its offers."""

    name: str
    types: tuple[type, ...]
    """An offer is an instance of one of these."""


CLIENT_TELEMETRY = Hook[ClientTelemetry | ClientTelemetryExporterProvider](
    "odradek_client_telemetry", (ClientTelemetry, ClientTelemetryExporterProvider)
)
ENRICHER = Hook[Enricher]("odradek_enricher", (Enricher,))
FORWARDER = Hook[Forwarder | Mapping[str, Forwarder]]("odradek_forwarder", (Forwarder, Mapping))
SOURCE = Hook[Source]("odradek_source", (Source,))
TOPIC_WRITER = Hook[TopicWriter]("odradek_topic_writer", (TopicWriter,))
QUOTA_CALLBACK = Hook[ClientQuotaCallback]("odradek_quota_callback", (ClientQuotaCallback,))
COMPANION = Hook[Companion]("odradek_companion", (Companion,))
AUTHORIZER = Hook[Authorizer]("odradek_authorizer", (Authorizer,))
PRINCIPAL_BUILDER = Hook[PrincipalBuilder]("odradek_principal_builder", (PrincipalBuilder,))

HOOKS: Mapping[str, Hook[object]] = {
    hook.name: hook  # type: ignore[misc]  # a Hook[Enricher] is a Hook[object]: offers are only read
    for hook in (
        CLIENT_TELEMETRY,
        ENRICHER,
        FORWARDER,
        SOURCE,
        TOPIC_WRITER,
        QUOTA_CALLBACK,
        COMPANION,
        AUTHORIZER,
        PRINCIPAL_BUILDER,
    )
}
"""By name."""
