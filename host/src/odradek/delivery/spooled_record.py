"""A push as a forwarder reads it out of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import Origin, TelemetryRecord
from odradek.topic.telemetry_topic import (
    PUSH_TELEMETRY,
    MalformedTelemetry,
    decode_record,
    encode_headers,
    record_key,
)
from odradek.topic.topic_format import TopicFormat
from odradek.wire.record import Record

MALFORMED: Final = "malformed"
LEAST_HEADERS: Final = 10
"""The mandatory headers of `decode_record`."""
NOBODY: Final = RequestContext(ConnectionContext("", "", "", "", 0, -1), PUSH_TELEMETRY, 0, 0, None, 0)
"""The context of a record that was not written by a host."""
INTERVAL_MS: Final = 60_000


@dataclass(slots=True, eq=False, kw_only=True)
class SpooledRecord(TelemetryRecord):
    """Knows its position, so that it can be committed or become a dead letter."""

    partition: int
    original: Record
    """The record in the topic. Pushes of several clients may share it."""
    fault: str | None = None
    """The reason why no plugin can get it; None if one can."""
    is_first: bool = True
    """Whether it is the first push of its record."""
    is_whole: bool = True
    """Whether its dead letter is the record as it is."""

    def letter(self) -> Record:
        """The record for the topic of dead letters: of a record in another format, the push of this client
        alone, as a host would write it.
        """
        if self.is_whole:
            return self.original
        return self.original._replace(
            key=record_key(self.payload.client_instance_id),
            value=self.payload.data,
            headers=tuple(encode_headers(self)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFormat:
    """The format of the records of a topic."""

    name: TopicFormat = TopicFormat.ODRADEK
    interval_ms: int = INTERVAL_MS
    """Stands for the push interval in formats that do not tell it."""

    def may_be_push(self, record: Record) -> bool:
        """Whether it is worth decoding a record: a cheap look at its shape."""
        if self.name is TopicFormat.ODRADEK:
            return (
                record.key is not None and record.value is not None and len(record.headers) >= LEAST_HEADERS
            )
        return record.value is not None

    def spooled(self, partition: int, original: Record, topic_id: str = "") -> list[SpooledRecord]:
        """The pushes of a record, whoever wrote it: with a fault if it does not have the format.

        Without a topic id, their position is not known to others.
        """
        fault = None
        try:
            found = self.decode(original)
        except MalformedTelemetry as error:
            fault = str(error)
            payload = ClientTelemetryPayload(bytes(16), terminating=False, data=original.value or b"")
            found = [TelemetryRecord(NOBODY, 0, payload)]
        position = Origin(topic_id, partition, original.offset) if topic_id else None
        is_whole = self.name is TopicFormat.ODRADEK or fault is not None
        return [
            SpooledRecord(
                context=read.context,
                push_interval_ms=read.push_interval_ms,
                payload=read.payload,
                subscription_id=read.subscription_id,
                codec=read.codec,
                observed=read.observed,
                labeled=read.labeled,
                source=read.source,
                origin=read.origin or position,
                position=position,
                partition=partition,
                original=original,
                fault=fault,
                is_first=number == 0,
                is_whole=is_whole,
            )
            for number, read in enumerate(found)
        ]

    def decode(self, original: Record) -> list[TelemetryRecord]:
        """The pushes of a record.

        Raises:
            MalformedTelemetry: It does not have the format.
        """
        if self.name is TopicFormat.ODRADEK:
            return [decode_record(original.key, original.value, original.headers)]
        # The readers of OTLP need protobuf's messages, which a host does not load at its start.
        from odradek.topic.topic_messages import decode_message

        return decode_message(
            self.name,
            original.key,
            original.value,
            original.headers,
            timestamp_ms=original.timestamp_ms,
            interval_ms=self.interval_ms,
        )
