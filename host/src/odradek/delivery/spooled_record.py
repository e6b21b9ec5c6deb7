"""A push as a forwarder reads it out of the log."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import Origin, TelemetryRecord
from odradek.plugin.telemetry_topic import PUSH_TELEMETRY, MalformedTelemetry, decode_record
from odradek.wire.record import Record

MALFORMED = "malformed"
LEAST_HEADERS = 10
"""The mandatory headers of `decode_record`."""
NOBODY = RequestContext(ConnectionContext("", "", "", "", 0, -1), PUSH_TELEMETRY, 0, 0, None, 0)
"""The context of a record that was not written by a host."""


@dataclass(slots=True, eq=False, kw_only=True)
class SpooledRecord(TelemetryRecord):
    """Knows its position, so that it can be committed or become a dead letter."""

    partition: int
    original: Record
    """The record in the log."""
    fault: str | None = None
    """The reason why no plugin can get it; None if one can."""


def may_be_push(record: Record) -> bool:
    """Whether it is worth decoding a record: a cheap look at its shape."""
    return record.key is not None and record.value is not None and len(record.headers) >= LEAST_HEADERS


def spooled(partition: int, original: Record, topic_id: str = "") -> SpooledRecord:
    """A record of the topic, whoever wrote it. Without a topic id, its position is not known to others."""
    fault = None
    try:
        read = decode_record(original.key, original.value, original.headers)
    except MalformedTelemetry as error:
        fault = str(error)
        payload = ClientTelemetryPayload(bytes(16), terminating=False, data=original.value or b"")
        read = TelemetryRecord(NOBODY, 0, payload)
    position = Origin(topic_id, partition, original.offset) if topic_id else None
    return SpooledRecord(
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
    )
