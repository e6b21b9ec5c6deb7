"""The built-in plugin ``stdout``: one JSON line per push, for a person or for jq.

It parses each payload on the host's loop and writes with a blocking call. Use it to look at a few clients,
not for a fleet.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass
from typing import TextIO

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin.config import PluginConfig
from odradek.plugin.context import ClientTelemetryContext
from odradek.plugin.hookspecs import hookimpl
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.process.standard_streams import silence
from odradek.wire.uuid_text import uuid_text


@hookimpl
def odradek_client_telemetry(config: PluginConfig) -> StdoutReceiver:
    """The table has no keys of its own."""
    return StdoutReceiver()


@dataclass(slots=True, eq=False)
class StdoutReceiver:
    """Both provider and exporter. Once its stream breaks, every further push fails."""

    stream: TextIO | None = None
    """None means the current ``sys.stdout``."""
    closed: bool = False

    def client_telemetry_exporter(self) -> StdoutReceiver:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Write and flush one line.

        Raises:
            OSError: The stream is closed.
        """
        if self.closed:
            raise BrokenPipeError("stdout is closed")
        line = json.dumps(push_row(context, payload), separators=(",", ":")) + "\n"
        stream = self.stream or sys.stdout
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError) as error:
            self.closed = True
            silence(stream)
            raise BrokenPipeError(f"stdout is closed: {error}") from error


def push_row(context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> dict[str, object]:
    """The content of one line.

    Keys: ``context``; ``metrics``, their number; ``names``, sorted, without duplicates; ``labels``, the
    attributes of the first Resource.
    """
    data = MetricsData.FromString(payload.data)
    names = [
        metric.name
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    attributes = data.resource_metrics[0].resource.attributes if data.resource_metrics else []
    return {
        "context": context_row(context, payload),
        "metrics": len(names),
        "names": sorted(set(names)),
        "labels": {attribute.key: plain(attribute.value) for attribute in attributes},
    }


def context_row(context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> dict[str, object]:
    """The client, the time and the connection of a push."""
    request, connection = context.request, context.request.connection
    return {
        "client_id": request.client_id,
        "client_instance_id": uuid_text(payload.client_instance_id),
        "client_software_name": connection.client_software_name,
        "client_software_version": connection.client_software_version,
        "client_source_address": connection.client_address,
        "client_source_port": connection.client_port,
        "principal": connection.principal,
        "listener": connection.listener_name,
        "broker_id": connection.node_id,
        "push_interval_ms": context.push_interval_ms,
        "received_ms": request.received_ms,
        "terminating": payload.terminating,
        **({"refused": payload.refused} if payload.refused else {}),
    }


def plain(value: AnyValue) -> object:
    """An attribute's value for JSON: bytes in base64, infinities and NaN as text."""
    kind = value.WhichOneof("value")
    match kind:
        case "array_value":
            return [plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {item.key: plain(item.value) for item in value.kvlist_value.values}
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "double_value":
            finite = abs(value.double_value) < float("inf")
            return value.double_value if finite else str(value.double_value)
        case None:
            return None
        case _:
            return getattr(value, kind)
