"""Records of a topic with telemetry, and the identity of the client in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.otlp import labeler
from odradek.plugin import Origin, TelemetryRecord, context_labels
from odradek.topic import MalformedTelemetry, TopicFormat, decode_message
from odradek.topic.telemetry_topic import CODECS, record_key
from odradek_tables.decoder.topic_record import Header, TopicRecord

MAX_CLIENTS = 65_536
"""Limit of cached identities in a worker process."""
LATEST_MS = 10**14 - 1
"""In the year 5138. Later times are wrong, and readers of the tables do not support years of five digits."""
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
PUSH_HEADERS = ("received_ms", "codec", "terminating")
"""The last headers, in this order. They differ from push to push; the others do not."""
ORIGIN_HEADERS = ("origin_topic_id", "origin_partition", "origin_offset")
"""They follow in a record that was copied from the log of another host."""


CacheKey = tuple[bytes | Header | None, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of the client, equal for all pushes of a client instance on one connection."""

    client_instance_id: str
    client_id: str | None
    software_name: str
    software_version: str
    principal: str
    listener: str
    client_address: str
    broker_id: int
    push_interval_ms: int
    subscription_id: int
    source: str | None = None
    """The plugin that brought the record to its first host; None if a client pushed it there."""
    observed: bool = False
    """A host derived the metrics from the client's requests."""
    label: Callable[[bytes], bytes] | None = field(default=None, compare=False)
    """Sets the labels on a payload; None if a host has set them."""


class Push(NamedTuple):
    """One record with decoded headers; its payload is not decoded yet."""

    partition: int
    offset: int
    recv_ms: int
    identity: Identity
    codec: str
    """The compression that the client used; the payload itself is uncompressed."""
    terminating: bool
    payload: bytes
    """As it is in the topic; `Identity.label` is not applied."""
    origin: str | None = None
    """Topic id, partition and offset at which the first host stored the record, if this one is a copy."""


class PushReader:
    """Decodes the headers of records. It caches identities, because their headers repeat.

    ``interval_ms`` stands for the push interval in formats that tell none.
    """

    def __init__(self, topic_format: TopicFormat = TopicFormat.ODRADEK, interval_ms: int = 60_000) -> None:
        self.topic_format, self.interval_ms = topic_format, interval_ms
        self.identities: dict[CacheKey, Identity] = {}

    def read(self, record: TopicRecord) -> list[Push]:
        """Decode the headers of a record: one push, or of OTLP one for each client in it.

        Raises:
            MalformedTelemetry: The record does not have the format of the topic.
        """
        if self.topic_format is not TopicFormat.ODRADEK:
            return [push_of(record, each, identity_of(each)) for each in self.decoded(record)]
        headers = without_origin(record.headers)
        last = headers[-len(PUSH_HEADERS) :]
        known = self.identities.get(cache_key(record.key, headers)) if names(last) == PUSH_HEADERS else None
        if known is not None and record.value is not None:
            received, codec, terminating = (value for _, value in last)
            if received is not None and is_time(received) and codec in CODEC_NAMES:
                push = Push(
                    record.partition,
                    record.offset,
                    int(received),
                    known,
                    CODEC_NAMES[codec],
                    terminating == b"true",
                    record.value,
                    None if headers is record.headers else origin_in(record.headers),
                )
                return [push]
        return [self.read_slowly(record)]

    def decoded(self, record: TopicRecord) -> list[TelemetryRecord]:
        """Decode with the reader of hosts, which checks everything."""
        found = decode_message(
            self.topic_format,
            record.key,
            record.value,
            record.headers,
            timestamp_ms=record.timestamp_ms,
            interval_ms=self.interval_ms,
        )
        for each in found:
            within("received_ms", each.context.received_ms, LATEST_MS)
            within("push_interval_ms", each.push_interval_ms, INT32_MAX)
            within("subscription_id", each.subscription_id, INT32_MAX, INT32_MIN)
            within("broker_id", each.context.connection.node_id, INT32_MAX, INT32_MIN)
        return found

    def read_slowly(self, record: TopicRecord) -> Push:
        """Decode a record of a host, and remember its identity."""
        (telemetry,) = self.decoded(record)
        identity = identity_of(telemetry)
        if len(self.identities) >= MAX_CLIENTS:
            self.identities.clear()
        self.identities[cache_key(record.key, without_origin(record.headers))] = identity
        return push_of(record, telemetry, identity)


def push_of(record: TopicRecord, telemetry: TelemetryRecord, identity: Identity) -> Push:
    payload = telemetry.payload
    return Push(
        record.partition,
        record.offset,
        telemetry.context.received_ms,
        identity,
        CODECS[telemetry.codec],
        payload.terminating,
        payload.data,
        None if telemetry.origin is None else origin_text(telemetry.origin),
    )


def origin_text(origin: Origin) -> str:
    return f"{origin.topic_id}-{origin.partition}@{origin.offset}"


def origin_in(headers: Sequence[Header]) -> str:
    """The text of the last headers, which are `ORIGIN_HEADERS`."""
    topic_id, partition, offset = (value or b"" for _, value in headers[-len(ORIGIN_HEADERS) :])
    try:
        return origin_text(Origin(topic_id.decode(), int(partition), int(offset)))
    except ValueError as error:
        raise MalformedTelemetry(f"origin: {error}") from error


def is_time(text: bytes) -> bool:
    """Whether a header has only digits, and so few that it is a time up to `LATEST_MS`."""
    return len(text) <= 14 and text.isdigit()


def within(name: str, number: int, largest: int, least: int = 0) -> None:
    """Check that a header's number fits its column."""
    if not least <= number <= largest:
        raise MalformedTelemetry(f"{name}: expected {least} to {largest}, found {number}")


CODEC_NAMES = {name.encode(): name for name in CODECS}


def names(headers: Sequence[Header]) -> tuple[str, ...]:
    return tuple([name for name, _ in headers])


def without_origin(headers: Sequence[Header]) -> Sequence[Header]:
    """The headers before those of the origin."""
    if headers and headers[-1][0] == ORIGIN_HEADERS[-1] and names(headers[-3:]) == ORIGIN_HEADERS:
        return headers[: -len(ORIGIN_HEADERS)]
    return headers


def cache_key(key: bytes | None, headers: Sequence[Header]) -> CacheKey:
    """The parts of a record that determine the identity: its key and all headers before `PUSH_HEADERS`."""
    return (key, *headers[: -len(PUSH_HEADERS)])


def identity_of(telemetry: TelemetryRecord) -> Identity:
    context, connection = telemetry.context, telemetry.context.connection
    return Identity(
        client_instance_id=record_key(telemetry.payload.client_instance_id).decode(),
        client_id=None if context.client_id is None else printable(context.client_id),
        software_name=printable(connection.client_software_name),
        software_version=printable(connection.client_software_version),
        principal=printable(connection.principal),
        listener=printable(connection.listener_name),
        client_address=printable(connection.client_address),
        broker_id=connection.node_id,
        push_interval_ms=telemetry.push_interval_ms,
        subscription_id=telemetry.subscription_id,
        source=None if telemetry.source is None else printable(telemetry.source),
        observed=telemetry.observed,
        label=None if telemetry.labeled else labeler_of(telemetry),
    )


def labeler_of(telemetry: TelemetryRecord) -> Callable[[bytes], bytes]:
    """Sets the labels that a host would set by default."""
    labels = context_labels(telemetry.payload.client_instance_id, telemetry.context)
    return labeler({name: printable(value) for name, value in labels.items()})


def printable(text: str) -> str:
    """Replace what is not valid UTF-8: clients choose their names."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
