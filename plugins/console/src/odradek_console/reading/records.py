"""Records of the telemetry topic, with numbers that can be shown and computed with."""

from __future__ import annotations

from typing import Final

from odradek.client.fetch import Received
from odradek.plugin import TelemetryRecord
from odradek.topic import MalformedTelemetry, decode_record

LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""
LONGEST_MS: Final = 2**31 - 1


def decoded(received: Received, latest_ms: int = LATEST_MS) -> TelemetryRecord:
    """The push in a record.

    Args:
        received: The record.
        latest_ms: A later one would make all other clients look silent.

    Raises:
        MalformedTelemetry: No host has written the record. Who may write to the topic can write anything.
    """
    record = received.record
    found = decode_record(record.key, record.value, record.headers)
    if not 0 <= found.context.received_ms <= latest_ms:
        raise MalformedTelemetry("the time is not one of a host")
    if not 0 <= found.push_interval_ms <= LONGEST_MS:
        raise MalformedTelemetry("the push interval has more than 31 bits")
    return found
