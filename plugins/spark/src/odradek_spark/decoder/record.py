"""Records of the telemetry topic, and the client's identity in their headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from odradek.plugin import MalformedTelemetry
from odradek.plugin.context import RequestContext
from odradek.plugin.telemetry_topic import CODECS, decode_record, record_key

MAX_CLIENTS = 65_536
"""Limit of cached identities in a worker process."""
LATEST_MS = 10**14 - 1
"""In the year 5138. Later times are wrong, and readers of the tables do not support years of five digits."""
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
PUSH_HEADERS = ("received_ms", "codec", "terminating")
"""The last headers, in this order. They differ from push to push; the others do not."""
ORIGIN_HEADERS = ("origin_topic_id", "origin_partition", "origin_offset")
"""They follow in a record that was copied from the log of another host."""


Header = tuple[str, bytes | None]
CacheKey = tuple[bytes | Header | None, ...]


class TopicRecord(NamedTuple):
    """One record, as a Kafka client returns it."""

    partition: int
    offset: int
    timestamp_ms: int
    """The record's timestamp, epoch milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


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

    def received_at(self, recv_ms: int) -> Push:
        """A copy with another receive time."""
        return self._replace(recv_ms=recv_ms)


class PushReader:
    """Decodes the headers of records. It caches identities, because their headers repeat."""

    def __init__(self) -> None:
        self.identities: dict[CacheKey, Identity] = {}

    def read(self, record: TopicRecord) -> Push:
        """Decode the headers of a record.

        Raises:
            MalformedTelemetry: The record is not a push that a host has written.
        """
        headers = without_origin(record.headers)
        last = headers[-len(PUSH_HEADERS) :]
        known = self.identities.get(cache_key(record.key, headers)) if names(last) == PUSH_HEADERS else None
        if known is not None and record.value is not None:
            received, codec, terminating = (value for _, value in last)
            if received is not None and is_time(received) and codec in CODEC_NAMES:
                return Push(
                    record.partition,
                    record.offset,
                    int(received),
                    known,
                    CODEC_NAMES[codec],
                    terminating == b"true",
                    record.value,
                )
        return self.read_slowly(record)

    def read_slowly(self, record: TopicRecord) -> Push:
        """Decode with the host's own reader, which checks every header."""
        telemetry = decode_record(record.key, record.value, record.headers)
        within("received_ms", telemetry.context.received_ms, LATEST_MS)
        within("push_interval_ms", telemetry.push_interval_ms, INT32_MAX)
        within("subscription_id", telemetry.subscription_id, INT32_MAX, INT32_MIN)
        within("broker_id", telemetry.context.connection.node_id, INT32_MAX, INT32_MIN)
        payload = telemetry.payload
        identity = identity_of(
            payload.client_instance_id,
            telemetry.context,
            telemetry.push_interval_ms,
            telemetry.subscription_id,
        )
        if len(self.identities) >= MAX_CLIENTS:
            self.identities.clear()
        self.identities[cache_key(record.key, without_origin(record.headers))] = identity
        return Push(
            record.partition,
            record.offset,
            telemetry.context.received_ms,
            identity,
            CODECS[telemetry.codec],
            payload.terminating,
            payload.data,
        )


def is_time(text: bytes) -> bool:
    """Whether a header has only digits, and so few that it is a time up to `LATEST_MS`."""
    return len(text) <= 14 and text.isdigit()


def within(name: str, number: int, largest: int, least: int = 0) -> None:
    """Check that a header's number fits its column.

    Raises:
        MalformedTelemetry: The number does not fit.
    """
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


def identity_of(
    instance_id: bytes, context: RequestContext, push_interval_ms: int, subscription_id: int
) -> Identity:
    """The identity that the tables store, from a request's context."""
    connection = context.connection
    return Identity(
        client_instance_id=record_key(instance_id).decode(),
        client_id=None if context.client_id is None else printable(context.client_id),
        software_name=printable(connection.client_software_name),
        software_version=printable(connection.client_software_version),
        principal=printable(connection.principal),
        listener=printable(connection.listener_name),
        client_address=printable(connection.client_address),
        broker_id=connection.node_id,
        push_interval_ms=push_interval_ms,
        subscription_id=subscription_id,
    )


def printable(text: str) -> str:
    """Replace what is not valid UTF-8: clients choose their names."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
