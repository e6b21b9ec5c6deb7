"""The host's own metrics, pushed over OTLP/HTTP. Nothing here is imported unless ``metrics.otlp.endpoint`` is
set.
"""

from __future__ import annotations

from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from odradek.plugin.config import ConfigError
from odradek.server.meters.host_meter import CARDINALITY_LIMITS, HostMeter, ReadRows
from odradek.server.meters.metrics_settings import ENDPOINT, MetricsPushSettings

EXPORT_TIMEOUT_S = 10
"""For one push with its retries, unless the next one is due before. What cannot be sent is dropped: the next
push says it all again.
"""


def exporter(settings: MetricsPushSettings) -> MetricExporter:
    """The exporter of OpenTelemetry.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    except ImportError as error:
        raise ConfigError(ENDPOINT, "needs pip install 'odradek[metrics-otlp]'") from error
    timeout_s = min(EXPORT_TIMEOUT_S, settings.interval_ms / 1000)
    return OTLPMetricExporter(endpoint=settings.url, headers=settings.headers, timeout=timeout_s)


class MetricsPush:
    """Pushes every ``metrics.otlp.interval.ms``, on a thread of its own, and once more at the end.

    Raises:
        ConfigError: The exporter is not installed.
    """

    def __init__(self, settings: MetricsPushSettings, read_rows: ReadRows) -> None:
        reader = PeriodicExportingMetricReader(
            exporter(settings), settings.interval_ms, cardinality_limits=CARDINALITY_LIMITS
        )
        self.meter = HostMeter(read_rows, reader)

    def close(self, timeout_s: float) -> None:
        """Push what there is within the time; blocks, so call it in a thread."""
        self.meter.close(timeout_s)
