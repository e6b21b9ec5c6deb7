"""The host's own metrics, pushed over OTLP/HTTP. Only imported if ``metrics.otlp.endpoint`` is set."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader

from odradek.meters.host_meter import CARDINALITY_LIMITS, HostMeter
from odradek.meters.metrics_settings import ENDPOINT, MetricsPushSettings
from odradek.meters.plugin_metrics import WithPlugins
from odradek.plugin.config import ConfigError

EXPORT_TIMEOUT_S = 10
"""Time limit of one push with its retries, or less if the next push is due earlier. A failed push is dropped:
the next one repeats all values.
"""


def exporter(settings: MetricsPushSettings) -> MetricExporter:
    """Return the exporter of OpenTelemetry.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    except ImportError as error:
        raise ConfigError(ENDPOINT, "needs the extra odradek[metrics-otlp]") from error
    from odradek.meters.metrics_session import session

    timeout_s = min(EXPORT_TIMEOUT_S, settings.interval_ms / 1000)
    return OTLPMetricExporter(
        endpoint=settings.url, headers=settings.headers, timeout=timeout_s, session=session()
    )


class PushReader(WithPlugins, PeriodicExportingMetricReader):
    """OpenTelemetry's reader, with the metrics of plugins."""


class MetricsPush:
    """Pushes every ``metrics.otlp.interval.ms``, on its own thread, and once more at the end.

    Raises:
        ConfigError: The exporter is not installed.
    """

    def __init__(self, settings: MetricsPushSettings, meter: Callable[[WithPlugins], HostMeter]) -> None:
        reader = PushReader(exporter(settings), settings.interval_ms, cardinality_limits=CARDINALITY_LIMITS)
        self.meter = meter(reader)

    def close(self, timeout_s: float) -> None:
        """Push the current values within the time limit; blocks, so call it in a thread."""
        self.meter.close(timeout_s)
