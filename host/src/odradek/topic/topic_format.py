"""The formats of a topic with telemetry."""

from __future__ import annotations

from enum import StrEnum


class TopicFormat(StrEnum):
    """The format of a topic's records."""

    ODRADEK = "odradek"
    """Records as a host writes them (``docs/reference/telemetry-topic.md``)."""
    OTLP_PROTO = "otlp_proto"
    """The value is a serialized ``ExportMetricsServiceRequest`` or ``MetricsData``; key and headers are
    ignored."""
    OTLP_JSON = "otlp_json"
    """The same as OTLP/JSON."""
