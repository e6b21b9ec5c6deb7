"""Results of operations as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import singledispatch
from operator import attrgetter
from typing import Any

from odradek.testing.conformance import ConformanceReport
from odradek.testing.data_points import DataPoint
from odradek.testing.fault import Fault
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
def _(value: Fault) -> str:
    return str(value)


SOFTWARE = ("context.connection.client_software_name", "context.connection.client_software_version")
SHOWN: Mapping[type, Sequence[str]] = {
    DataPoint: ("metric", "kind", "value", "unit", "time_ms", "delta", "monotonic", "labels"),
    Push: (
        "number",
        "client_id",
        "request.subscription_id",
        *SOFTWARE,
        "error",
        "fault",
        "terminating",
        "points",
    ),
    Request: (
        "api",
        "version",
        "client_id",
        *SOFTWARE,
        "context.received_ms",
        "request_bytes",
        "response_bytes",
        "answered",
        "error",
        "fault",
    ),
}
"""The attributes to show; the last part of each is its name."""


@as_json.register(DataPoint)
@as_json.register(Request)
def shown(value: Any) -> dict[str, Any]:
    """The attributes of `SHOWN`."""
    return {path.rpartition(".")[2]: as_json(attrgetter(path)(value)) for path in SHOWN[type(value)]}


@as_json.register
def _(value: Push) -> dict[str, Any]:
    request = value.request
    instance_id, sent_bytes = uuid_text(request.client_instance_id), len(request.metrics or b"")
    return {**shown(value), "client_instance_id": instance_id, "sent_bytes": sent_bytes}


@as_json.register
def _(value: ConformanceReport) -> Any:
    return value.as_json()
