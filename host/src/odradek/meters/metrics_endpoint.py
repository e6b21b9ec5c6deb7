"""The host's own metrics, for Prometheus. Only imported if ``metrics.listener`` is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread

import prometheus_client
from opentelemetry.exporter.prometheus import PrometheusMetricReader

from odradek.meters.health import Probe
from odradek.meters.host_meter import CARDINALITY_LIMITS, HostMeter
from odradek.meters.metrics_server import MetricsServer, ReadObjects, guarded, with_health, with_pages
from odradek.meters.metrics_settings import MetricsAddress
from odradek.meters.plugin_metrics import WithPlugins
from odradek.net.listener_tls import ListenerTls
from odradek.plugin.config import ConfigError

CLOSE_TIMEOUT_S = 5


class ScrapeReader(WithPlugins, PrometheusMetricReader):
    """OpenTelemetry's reader, with the metrics of plugins."""


class MetricsEndpoint:
    """Serves ``http://HOST:PORT/metrics`` and the probes on its own thread.

    Args:
        address: The address.
        meter: Makes the metrics for a reader.
        probes: By path.
        trouble: What a probe that passes names.
        token: The bearer token that a client must send; None if it needs none.
        tls: The certificates of an https address.
        pages: Of objects, by path.

    Raises:
        ConfigError: The address is in use.
    """

    def __init__(
        self,
        address: MetricsAddress,
        meter: Callable[[WithPlugins], HostMeter],
        probes: Mapping[str, Probe],
        trouble: Probe,
        token: str | None = None,
        tls: ListenerTls | None = None,
        pages: Mapping[str, ReadObjects] | None = None,
    ) -> None:
        registry = prometheus_client.CollectorRegistry()
        reader = ScrapeReader(registry=registry, cardinality_limits=CARDINALITY_LIMITS)
        self.meter = meter(reader)
        app = with_pages(prometheus_client.make_wsgi_app(registry), pages or {})
        try:
            protected = app if token is None else guarded(app, token)
            self.server = MetricsServer(
                address.host, address.port, with_health(protected, probes, trouble), tls
            )
        except OSError as error:
            reason = str(error.strerror).lower()
            raise ConfigError(
                "metrics.listener", f"cannot listen on {address.host}:{address.port}: {reason}"
            ) from error
        except UnicodeError as error:
            raise ConfigError("metrics.listener", f"{address.host} does not name a host") from error
        self.thread = Thread(target=self.server.serve_forever, name="metrics", daemon=True)
        self.thread.start()

    @property
    def bound_port(self) -> int:
        """The port in use, also if the configuration says 0."""
        return int(self.server.server_port)

    def close(self) -> None:
        """Close the port and end the thread; blocks for up to half a second, so call it in a thread."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        self.meter.close(CLOSE_TIMEOUT_S)
