"""A push as a forwarder reads it out of the log."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.plugin.telemetry_topic import PUSH_TELEMETRY, MalformedTelemetry, decode_record
from odradek.wire.record import Record

MALFORMED = "malformed"
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


def spooled(partition: int, original: Record) -> SpooledRecord:
    """A record of the topic, whoever wrote it."""
    fault = None
    try:
        read = decode_record(original.key, original.value, original.headers)
    except MalformedTelemetry as error:
        fault = str(error)
        payload = ClientTelemetryPayload(bytes(16), terminating=False, data=original.value or b"")
        read = TelemetryRecord(NOBODY, 0, payload)
    return SpooledRecord(
        context=read.context,
        push_interval_ms=read.push_interval_ms,
        payload=read.payload,
        subscription_id=read.subscription_id,
        codec=read.codec,
        partition=partition,
        original=original,
        fault=fault,
    )
