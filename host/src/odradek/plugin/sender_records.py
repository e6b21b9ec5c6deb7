"""Telemetry records of an OTLP request: one for each client instance in it.

An ``ExportMetricsServiceRequest`` has the bytes of a ``MetricsData``. Each Resource is a client instance.
Its id is that of the client if a broker forwarded a push of it, else it is derived from the attributes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin.context import UNKNOWN, ConnectionContext, RequestContext
from odradek.plugin.metrics_data import resource_metrics, shallow_resource_metrics
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protobuf_bytes import NotOtlp, delimited
from odradek.plugin.protocols import TelemetryRecord

RESOURCE_METRICS: Final = 0x0A
PUSH_TELEMETRY: Final = 72
LISTENER: Final = "OTLP"
ANONYMOUS: Final = "User:ANONYMOUS"
NO_NODE: Final = -1
NODES: Final = ("broker_node_id", "kafka.broker.id")
"""Attributes with the id of a broker that forwarded the push."""
MAX_INT32: Final = 2**31 - 1
MAX_DIGITS: Final = 10
MAX_RESOURCES: Final = 1_000
ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The connection that a request came on. Of an empty field the Resource may tell."""

    address: str = ""
    port: int = 0
    principal: str = ""
    security_protocol: str = ""


def otlp_records(
    data: bytes,
    sender: Sender,
    received_ms: int,
    interval_ms: int,
    source: str | None = None,
    resources_max: int = MAX_RESOURCES,
) -> list[TelemetryRecord]:
    """The records of a request, in the order of their first Resources. None has labels yet.

    Args:
        data: The request.
        sender: Its connection.
        received_ms: The time of the request, epoch milliseconds.
        interval_ms: Stands for the push interval, which senders of OTLP do not tell.
        source: The plugin that the records come through; None if the host sets it.
        resources_max: Limit of different Resources.

    Raises:
        NotOtlp: The bytes are not a request of OTLP for metrics, or have too many Resources.
    """
    entries: dict[bytes, list[bytes]] = {}
    for entry in resource_metrics(data):
        resource = b"".join(shallow_resource_metrics(entry).resource)
        entries.setdefault(resource, []).append(delimited(RESOURCE_METRICS, entry))
        if len(entries) > resources_max:
            raise NotOtlp(f"more than {resources_max} different Resources in one request")
    instances: dict[bytes, tuple[Mapping[str, str], list[bytes]]] = {}
    for resource, parts in entries.items():
        attributes = attributes_of(resource)
        # Several Resources may tell the same id. Each instance is one record: origin and id identify it.
        _, theirs = instances.setdefault(instance_id(resource, attributes), (attributes, []))
        theirs += parts
    return [
        TelemetryRecord(
            context_of(attributes, sender, received_ms),
            interval_ms,
            ClientTelemetryPayload(instance, False, b"".join(parts)),
            labeled=False,
            source=source,
        )
        for instance, (attributes, parts) in instances.items()
    ]


def attributes_of(resource: bytes) -> dict[str, str]:
    """The attributes of a Resource that are text or whole numbers, as text.

    Raises:
        NotOtlp: The bytes are not a Resource.
    """
    try:
        found = Resource.FromString(resource)
    except DecodeError as error:
        raise NotOtlp("a Resource is malformed") from error
    return attribute_texts(found.attributes)


def attribute_texts(attributes: Sequence[KeyValue]) -> dict[str, str]:
    """The attributes that are text or whole numbers, as text. Empty text is left out."""
    texts = {each.key: each.value.string_value for each in attributes if each.value.string_value}
    numbers = {each.key: each.value for each in attributes if each.value.HasField("int_value")}
    return texts | {key: str(value.int_value) for key, value in numbers.items()}


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
    OpenTelemetry SDK. Facts of the connection win over attributes, which any sender can set.
    """
    software = attributes.get("client_software_name") or attributes.get("telemetry.sdk.name") or UNKNOWN
    version = attributes.get("client_software_version") or attributes.get("telemetry.sdk.version") or UNKNOWN
    address, port = sender.address, sender.port
    if not address:
        address = attributes.get("client_source_address", "")
        port = whole_number(attributes.get("client_source_port", ""), 0)
    connection = ConnectionContext(
        connection_id=f"otlp-{address}:{port}",
        listener_name=LISTENER,
        security_protocol=sender.security_protocol,
        client_address=address,
        client_port=port,
        node_id=next((whole_number(attributes[key], NO_NODE) for key in NODES if key in attributes), NO_NODE),
        principal=sender.principal or attributes.get("principal") or ANONYMOUS,
        client_software_name=software,
        client_software_version=version,
    )
    client_id = attributes.get("client_id") or attributes.get("service.name")
    return RequestContext(connection, PUSH_TELEMETRY, 0, 0, client_id, received_ms)


def whole_number(text: str, otherwise: int) -> int:
    """A number of 32 bits that is not negative, in decimal."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if is_number and int(text) <= MAX_INT32 else otherwise


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
