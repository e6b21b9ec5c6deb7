"""Results of operations as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from enum import Enum
from functools import singledispatch
from typing import Any

from odradek.testing.conformance import ConformanceReport
from odradek.testing.data_points import DataPoint
from odradek.testing.host_topics import StoredRecord
from odradek.testing.request_log import Request
from odradek.testing.telemetry_log import Push
from odradek.wire.uuid_text import uuid_text


@singledispatch
def as_json(value: Any) -> Any:
    """Return a value that `json.dumps` takes.

    Bytes become text, or ``{"base64": "..."}`` if they are not UTF-8; a number that JSON does not have (NaN,
    infinity) becomes null.
    """
    return value


@as_json.register
def _(value: float) -> float | None:
    return value if math.isfinite(value) else None


@as_json.register
def _(value: Enum) -> str:
    return value.name


@as_json.register
def _(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


@as_json.register(list)
@as_json.register(tuple)
def _(value: Any) -> list[Any]:
    return [as_json(each) for each in value]


@as_json.register
def _(value: Mapping) -> dict[str, Any]:  # type: ignore[type-arg]
    return {key: as_json(each) for key, each in value.items()}


@as_json.register
def _(value: StoredRecord) -> dict[str, Any]:
    return {name: as_json(each) for name, each in value._asdict().items()}


@as_json.register
def _(value: DataPoint) -> dict[str, Any]:
    return {
        "metric": value.metric,
        "kind": value.kind,
        "value": as_json(value.value),
        "unit": value.unit,
        "time_ms": value.time_ms,
        "delta": value.delta,
        "monotonic": value.monotonic,
        "labels": as_json(value.labels),
    }


@as_json.register
def _(value: Push) -> dict[str, Any]:
    return {
        "number": value.number,
        "client_id": value.client_id,
        "client_instance_id": uuid_text(value.request.client_instance_id),
        "subscription_id": value.request.subscription_id,
        "client_software_name": value.context.connection.client_software_name,
        "client_software_version": value.context.connection.client_software_version,
        "error": as_json(value.error),
        "fault": None if value.fault is None else str(value.fault),
        "terminating": value.terminating,
        "sent_bytes": len(value.request.metrics or b""),
        "points": as_json(value.points),
    }


@as_json.register
def _(value: Request) -> dict[str, Any]:
    return {
        "api": value.api,
        "version": value.version,
        "client_id": value.client_id,
        "client_software_name": value.context.connection.client_software_name,
        "client_software_version": value.context.connection.client_software_version,
        "received_ms": value.context.received_ms,
        "request_bytes": value.request_bytes,
        "response_bytes": value.response_bytes,
        "answered": value.answered,
        "error": as_json(value.error),
        "fault": None if value.fault is None else str(value.fault),
    }


@as_json.register
def _(value: ConformanceReport) -> Any:
    return value.as_json()
