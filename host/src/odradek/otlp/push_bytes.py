"""The bytes of a push, split at its Resource: equal clients differ in that, and in numbers after it."""

from __future__ import annotations

from odradek.otlp.protobuf_fields import LENGTH_DELIMITED, value_bounds

RESOURCE_METRICS = 0x0A
RESOURCE = 0x0A


def body_start(data: bytes) -> tuple[int, int] | None:
    """Start of the Resource's contents and start of the body, in a push as a host has labeled it.

    Such a push is one ResourceMetrics whose first field is the Resource. None for any other payload.
    """
    try:
        start, end = value_bounds(data, 1, LENGTH_DELIMITED)
        if data[0] != RESOURCE_METRICS or end != len(data) or data[start] != RESOURCE:
            return None
        value, body = value_bounds(data, start + 1, LENGTH_DELIMITED)
    except IndexError:
        return None
    return (value, body) if body <= end else None
