"""Telemetry records of an OTLP request: one for each client instance in it.

An ``ExportMetricsServiceRequest`` has the bytes of a ``MetricsData``. Each Resource is a client instance.
Its id is that of the client if a broker forwarded a push of it, else it is derived from the attributes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.otlp.metrics_data import parsed
from odradek.otlp.private_messages import message_classes
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.otlp.protobuf_fields import FieldBudget, TooMuchWork, fields
from odradek.plugin.context import UNKNOWN, ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord

RESOURCE_METRICS: Final = 0x0A
RESOURCE: Final = 0x0A
PUSH_TELEMETRY: Final = 72
LISTENER: Final = "OTLP"
ANONYMOUS: Final = "User:ANONYMOUS"
NO_NODE: Final = -1
NODES: Final = ("broker_node_id", "kafka.broker.id")
"""Attributes with the id of a broker that forwarded the push."""
MAX_INT32: Final = 2**31 - 1
MAX_DIGITS: Final = 10
MAX_RESOURCES: Final = 1_000
MAX_FIELDS: Final = 60_000
"""Fields of ResourceMetrics that are looked at, and of Resources: half a microsecond each."""
MAX_RESOURCE_BYTES: Final = 1 << 20
MAX_COUNTED_BYTES: Final = 1 << 20
ID_BYTES: Final = 16
KINDS: Final = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
CLASSES: Final = message_classes(
    "odradek.sender_records",
    {
        "AnyValue": {"string_value": (1, "bytes"), "int_value": (3, "int64*")},
        "KeyValue": {"key": (1, "bytes"), "value": (2, "AnyValue")},
        "Resource": {"attributes": (1, "KeyValue*")},
        "Data": {"data_points": (1, "bytes*")},
        "Metric": {kind: (Metric.DESCRIPTOR.fields_by_name[kind].number, "Data") for kind in KINDS},
        "ScopeMetrics": {"metrics": (2, "Metric")},
        "ResourceMetrics": {"scope_metrics": (2, "ScopeMetrics")},
        "MetricsData": {"resource_metrics": (1, "ResourceMetrics")},
    },
)
"""A Resource with the values that are used, where a list of numbers tells 0 from none; and OTLP with singular
fields, which the parser merges (`odradek.otlp.metrics_data`)."""
parse_resource: Final[Any] = CLASSES["Resource"].FromString
parse_attribute: Final[Any] = CLASSES["KeyValue"].FromString
parse_points: Final[Any] = CLASSES["MetricsData"].FromString


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
        NotOtlp: The bytes are not a request of OTLP for metrics, or have too many Resources, or more fields
            of ResourceMetrics or of Resources than are looked at.
    """
    try:
        entries = by_resource(data, resources_max)
        described = described_resources(entries)
    except TooMuchWork:
        raise NotOtlp(f"more than {MAX_FIELDS} ResourceMetrics or attributes in one request") from None
    instances: dict[bytes, tuple[Mapping[str, str], list[bytes]]] = {}
    for resource, parts in entries.items():
        attributes = described[resource]
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


def by_resource(data: bytes, resources_max: int) -> dict[bytes, list[bytes]]:
    """The fields with the ResourceMetrics of each Resource.

    They are looked at one by one: protobuf's parser could not be stopped at a million of them.

    Raises:
        NotOtlp: As `otlp_records`.
        TooMuchWork: There are too many fields to look at.
    """
    budget = FieldBudget(MAX_FIELDS)
    entries: dict[bytes, list[bytes]] = {}
    for tag, start, value, end in fields(data, budget):
        if tag == RESOURCE_METRICS:
            parts = [data[first:last] for each, _, first, last in fields(data, budget, value, end)
                     if each == RESOURCE]  # fmt: skip
            entries.setdefault(b"".join(parts), []).append(data[start:end])
            if len(entries) > resources_max:
                raise NotOtlp(f"more than {resources_max} different Resources in one request")
    return entries


def described_resources(resources: Iterable[bytes]) -> dict[bytes, Mapping[str, str]]:
    """The attributes of each Resource that are text or whole numbers, as text. Empty text is left out.

    Raises:
        NotOtlp: One is not a Resource, or too large.
        TooMuchWork: There are too many attributes to look at.
    """
    budget = FieldBudget(MAX_FIELDS)
    found: dict[bytes, Mapping[str, str]] = {}
    for resource in resources:
        if len(resource) > MAX_RESOURCE_BYTES:
            raise NotOtlp(f"a Resource of {len(resource)} bytes, at most {MAX_RESOURCE_BYTES} are allowed")
        for _ in fields(resource, budget):
            pass
        found[resource] = attribute_texts(parsed(parse_resource, resource).attributes)
    return found


def attribute_texts(attributes: Iterable[Any]) -> dict[str, str]:
    """The attributes that are text or whole numbers, as text, of results of `parse_attribute`."""
    texts, numbers = {}, {}
    for each in attributes:
        key, value = each.key.decode(errors="replace"), each.value
        if value.string_value:
            texts[key] = value.string_value.decode(errors="replace")
        elif value.int_value:
            numbers[key] = str(value.int_value[-1])
    return texts | numbers


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
    """The number of data points of a MetricsData; 0 if it is malformed, or too large to be counted."""
    if len(data) > MAX_COUNTED_BYTES:
        return 0
    try:
        found = parsed(parse_points, data).resource_metrics.scope_metrics.metrics
    except NotOtlp:
        return 0
    return sum(len(getattr(found, kind).data_points) for kind in KINDS)
