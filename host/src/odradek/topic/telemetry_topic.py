"""Records of the telemetry topic: encode a push as key, value and headers, and decode it.

The format is public (``docs/reference/telemetry-topic.md``). This module needs only this package, so any
program that reads the topic with a Kafka client (a Spark worker, a script) can use `decode_record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.plugin.context import UNKNOWN, ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import Origin, TelemetryRecord
from odradek.wire.uuid_text import parse_uuid, uuid_text

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Names of Kafka's compression types, by number."""
PUSH_TELEMETRY: Final = 72
TRUE, FALSE = b"true", b"false"

CLIENT_ID: Final = "client_id"
RECEIVED_MS: Final = "received_ms"
TERMINATING: Final = "terminating"
CODEC: Final = "codec"
OBSERVED: Final = "observed"
REFUSED: Final = "refused"
LABELED: Final = "labeled"
SOURCE: Final = "source"
CLUSTER_ID: Final = "cluster_id"
ORIGIN_TOPIC_ID: Final = "origin_topic_id"
ORIGIN_PARTITION: Final = "origin_partition"
ORIGIN_OFFSET: Final = "origin_offset"

Header = tuple[str, bytes | None]
OBSERVED_MARK: Final[Header] = (OBSERVED, TRUE)
"""The additional header of a record that no client pushed, after `client_headers`."""


class MalformedTelemetry(ValueError):
    """The record is not a push that a host has written.

    Args:
        reason: The part that is missing or wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def record_key(client_instance_id: bytes) -> bytes:
    """The key of a push: the client instance id as Kafka prints it."""
    return uuid_text(client_instance_id).encode()


def client_headers(context: RequestContext, push_interval_ms: int, subscription_id: int) -> list[Header]:
    """The headers that all pushes of a client instance on a connection have in common."""
    connection = context.connection
    client_id = context.client_id
    return [
        (CLIENT_ID, None if client_id is None else as_bytes(client_id)),
        ("client_software_name", as_bytes(connection.client_software_name)),
        ("client_software_version", as_bytes(connection.client_software_version)),
        ("client_source_address", as_bytes(connection.client_address)),
        ("client_source_port", b"%d" % connection.client_port),
        ("principal", as_bytes(connection.principal)),
        ("listener", as_bytes(connection.listener_name)),
        ("security_protocol", as_bytes(connection.security_protocol)),
        ("connection_id", as_bytes(connection.connection_id)),
        ("broker_id", b"%d" % connection.node_id),
        ("api_version", b"%d" % context.api_version),
        ("push_interval_ms", b"%d" % push_interval_ms),
        ("subscription_id", b"%d" % subscription_id),
    ]


def push_headers(received_ms: int, codec: int, terminating: bool) -> list[Header]:
    """The headers of one push, which follow `client_headers`."""
    return [
        (RECEIVED_MS, b"%d" % received_ms),
        (CODEC, CODECS[codec].encode()),
        (TERMINATING, TRUE if terminating else FALSE),
    ]


def encode_headers(record: TelemetryRecord) -> list[Header]:
    """All headers of a push, in the order of the format."""
    return [
        *client_headers(record.context, record.push_interval_ms, record.subscription_id),
        *((OBSERVED_MARK,) if record.observed else ()),
        *way_headers(record),
        *push_headers(record.context.received_ms, record.codec, record.payload.terminating),
        *origin_headers(record.origin),
    ]


def way_headers(record: TelemetryRecord) -> list[Header]:
    """The headers that say which way a record has come; none for a push on its first host."""
    headers: list[Header] = []
    if record.payload.refused:
        headers.append((REFUSED, b"%d" % record.payload.refused))
    if not record.labeled:
        headers.append((LABELED, FALSE))
    if record.source is not None:
        headers.append((SOURCE, as_bytes(record.source)))
    cluster_id = record.context.connection.cluster_id
    if cluster_id is not None:
        headers.append((CLUSTER_ID, as_bytes(cluster_id)))
    return headers


def origin_headers(origin: Origin | None) -> list[Header]:
    """The last headers: they differ in every record, and readers that remember the others leave them out."""
    if origin is None:
        return []
    return [
        (ORIGIN_TOPIC_ID, as_bytes(origin.topic_id)),
        (ORIGIN_PARTITION, b"%d" % origin.partition),
        (ORIGIN_OFFSET, b"%d" % origin.offset),
    ]


def decode_record(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | str | None]]
) -> TelemetryRecord:
    """Decode a record of the telemetry topic.

    Args:
        key: As `record_key`.
        value: OTLP ``MetricsData`` with the labels; empty for a push without metrics.
        headers: As `encode_headers`. Unknown headers are ignored; of a repeated header the last one counts.

    Raises:
        MalformedTelemetry: Key, value or a header is missing or malformed.
    """
    if key is None or value is None:
        raise MalformedTelemetry("a record without key or value")
    named = {name: as_text(found) for name, found in headers}
    try:
        instance_id = parse_uuid(key.decode())
        return TelemetryRecord(
            context=request_of(named),
            push_interval_ms=int(required(named, "push_interval_ms")),
            payload=ClientTelemetryPayload(
                instance_id,
                required(named, TERMINATING) == "true",
                value,
                refused=int(named.get(REFUSED) or 0),
            ),
            subscription_id=int(required(named, "subscription_id")),
            codec=CODECS.index(required(named, CODEC)),
            observed=named.get(OBSERVED) == "true",
            labeled=named.get(LABELED) != "false",
            source=named.get(SOURCE),
            origin=origin_of(named),
        )
    except ValueError as error:
        raise MalformedTelemetry(str(error)) from error


def request_of(named: Mapping[str, str | None]) -> RequestContext:
    """The request of a push. Its correlation id is not in the record."""
    connection = ConnectionContext(
        connection_id=named.get("connection_id") or "",
        listener_name=required(named, "listener"),
        security_protocol=named.get("security_protocol") or "",
        client_address=required(named, "client_source_address"),
        client_port=int(required(named, "client_source_port")),
        node_id=int(required(named, "broker_id")),
        principal=required(named, "principal"),
        client_software_name=named.get("client_software_name") or UNKNOWN,
        client_software_version=named.get("client_software_version") or UNKNOWN,
        cluster_id=named.get(CLUSTER_ID),
    )
    return RequestContext(
        connection=connection,
        api_key=PUSH_TELEMETRY,
        api_version=int(named.get("api_version") or 0),
        correlation_id=0,
        client_id=named.get(CLIENT_ID),
        received_ms=int(required(named, RECEIVED_MS)),
    )


def origin_of(named: Mapping[str, str | None]) -> Origin | None:
    """The origin of a record; None if it has none."""
    topic_id = named.get(ORIGIN_TOPIC_ID)
    if topic_id is None:
        return None
    return Origin(topic_id, int(required(named, ORIGIN_PARTITION)), int(required(named, ORIGIN_OFFSET)))


def required(named: Mapping[str, str | None], name: str) -> str:
    """The text of a mandatory header.

    Raises:
        MalformedTelemetry: The header is missing.
    """
    text = named.get(name)
    if text is None:
        raise MalformedTelemetry(f"no header {name}")
    return text


def as_bytes(text: str) -> bytes:
    """Encode text as UTF-8; bytes of a client that are not UTF-8 pass through unchanged."""
    return text.encode("utf-8", "surrogateescape")


def as_text(found: bytes | str | None) -> str | None:
    return found.decode("utf-8", "surrogateescape") if isinstance(found, bytes) else found
