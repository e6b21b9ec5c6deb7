"""The labels of a record that comes from elsewhere: set by the first reader of ours."""

from __future__ import annotations

from dataclasses import replace

from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import EncodedLabels
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.payload import label
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.wire.compression import TooLarge


def labeled_record(
    record: TelemetryRecord, labels: EncodedLabels | None, limits: PayloadLimits
) -> TelemetryRecord:
    """The record with its labels, checked: it is within the limits of a push. Call on any thread.

    Args:
        record: Unchanged. The same object is returned if it has its labels, or no metrics.
        labels: Those to set; ignored if the record has its labels.
        limits: Of a push.

    Raises:
        TooLarge: It exceeds a limit of pushes.
        WireError: Its payload is not OTLP.
    """
    payload = record.payload
    if not payload.data:
        return record
    if len(payload.data) > limits.max_bytes:
        raise TooLarge(f"{len(payload.data)} bytes, at most {limits.max_bytes} are allowed")
    if record.labeled:
        label(payload.data, None, limits)
        return record
    data = label(payload.data, labels, limits)
    return replace(
        record,
        payload=replace(payload, data=data),
        labeled=True,
    )


def payload_limits(config: TelemetryConfig, max_bytes: int, max_fields: int) -> PayloadLimits:
    """The configured limits of a push, with these bounds of bytes and fields."""
    return PayloadLimits(
        max_bytes=max_bytes,
        max_fields=max_fields,
        max_resource_metrics=config.max_resource_metrics,
        max_resources=config.max_resources,
        require_otlp=config.error_policy is not ErrorPolicy.KAFKA,
    )
