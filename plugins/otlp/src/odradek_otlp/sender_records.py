"""Telemetry records of an OTLP request: one for each Resource in it.

An ``ExportMetricsServiceRequest`` has the bytes of a ``MetricsData``. Each Resource is a client instance.
Its id is that of the client if a broker forwarded a push of it, else it is derived from the attributes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin import (
    UNKNOWN,
    ClientTelemetryPayload,
    ConnectionContext,
    NotOtlp,
    RequestContext,
    TelemetryRecord,
    delimited,
    resource_metrics,
    shallow_resource_metrics,
)

RESOURCE_METRICS: Final = 0x0A
PUSH_TELEMETRY: Final = 72
LISTENER: Final = "OTLP"
NO_NODE: Final = -1
MAX_RESOURCES: Final = 1_000
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The connection that a request came on."""

    address: str
    port: int
    principal: str
    security_protocol: str


def records_of(data: bytes, sender: Sender, received_ms: int, interval_ms: int) -> list[TelemetryRecord]:
    """The records of a request, in the order of their Resources.

    Raises:
        NotOtlp: The bytes are not a request of OTLP for metrics, or have too many Resources.
    """
    entries: dict[bytes, list[bytes]] = {}
    for entry in resource_metrics(data):
        resource = b"".join(shallow_resource_metrics(entry).resource)
        entries.setdefault(resource, []).append(delimited(RESOURCE_METRICS, entry))
        if len(entries) > MAX_RESOURCES:
            raise NotOtlp(f"more than {MAX_RESOURCES} different Resources in one request")
    records = []
    for resource, parts in entries.items():
        attributes = attributes_of(resource)
        context = context_of(attributes, sender, received_ms)
        payload = ClientTelemetryPayload(instance_id(resource, attributes), False, b"".join(parts))
        records.append(TelemetryRecord(context, interval_ms, payload, labeled=False))
    return records


def attributes_of(resource: bytes) -> dict[str, str]:
    """The attributes of a Resource that are text.

    Raises:
        NotOtlp: The bytes are not a Resource.
    """
    try:
        found = Resource.FromString(resource)
    except DecodeError as error:
        raise NotOtlp("a Resource is malformed") from error
    return {each.key: each.value.string_value for each in found.attributes if each.value.string_value}


def instance_id(resource: bytes, attributes: Mapping[str, str]) -> bytes:
    """The id of the client instance: the attribute ``client_instance_id``, else a hash of the Resource."""
    text = attributes.get("client_instance_id", "")
    try:
        known = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        known = b""
    if len(known) == ID_BYTES and any(known):
        return known
    return hashlib.sha256(b"odradek.otlp\0" + resource).digest()[:ID_BYTES]


def context_of(attributes: Mapping[str, str], sender: Sender, received_ms: int) -> RequestContext:
    """The request that a record appears to come from: the attributes of Kafka's clients, or those of an
    OpenTelemetry SDK.
    """
    software = attributes.get("client_software_name") or attributes.get("telemetry.sdk.name") or UNKNOWN
    version = attributes.get("client_software_version") or attributes.get("telemetry.sdk.version") or UNKNOWN
    connection = ConnectionContext(
        connection_id=f"otlp-{sender.address}:{sender.port}",
        listener_name=LISTENER,
        security_protocol=sender.security_protocol,
        client_address=sender.address,
        client_port=sender.port,
        node_id=NO_NODE,
        principal=sender.principal,
        client_software_name=software,
        client_software_version=version,
    )
    client_id = attributes.get("client_id") or attributes.get("service.name")
    return RequestContext(connection, PUSH_TELEMETRY, 0, 0, client_id, received_ms)


def data_points(data: bytes) -> int:
    """The number of data points of a MetricsData; 0 if it is malformed."""
    try:
        message = MetricsData.FromString(data)
    except DecodeError:
        return 0
    metrics = [
        metric
        for entry in message.resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    ]
    return sum(
        len(getattr(metric, kind).data_points) for metric in metrics if (kind := metric.WhichOneof("data"))
    )
