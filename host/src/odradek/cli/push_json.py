"""Pushes of the telemetry topic as JSON objects, which ``odradek consume --telemetry`` prints."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from odradek.client.fetch import Received
from odradek.hosting.stdout_receiver import context_row
from odradek.plugin.context import ClientTelemetryContext
from odradek.testing.data_points import DataPoint, data_points
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record


def push_object(received: Received) -> dict[str, Any]:
    """A push of the telemetry topic as a JSON object, with its data points.

    Raises:
        MalformedTelemetry: The record is not a push, or its payload is not OTLP.
    """
    (topic, index), _, record = received
    push = decode_record(record.key, record.value, record.headers)
    try:
        points = list(data_points(push.payload.data))
    except DecodeError as error:
        raise MalformedTelemetry(str(error)) from error
    context = ClientTelemetryContext(push.push_interval_ms, push.context)
    return {
        "topic": topic,
        "partition": index,
        "offset": record.offset,
        **context_row(context, push.payload),
        "subscription_id": push.subscription_id,
        "metrics": [point_object(point) for point in points],
    }


def point_object(point: DataPoint) -> dict[str, Any]:
    """A data point for JSON. Infinities and NaN are text."""
    finite = abs(point.value) < float("inf")
    return {
        "name": point.metric,
        "kind": point.kind,
        "unit": point.unit,
        "value": point.value if finite else str(point.value),
        "time_ms": point.time_ms,
        "delta": point.delta,
        "labels": point.labels,
    }
