"""The host's own metrics, for Prometheus. Only imported if ``metrics.listener`` is set."""

from __future__ import annotations

import prometheus_client
from opentelemetry.exporter.prometheus import PrometheusMetricReader

from odradek.broker.broker import Endpoint
from odradek.plugin.config import ConfigError
from odradek.server.meters.host_meter import CARDINALITY_LIMITS, HostMeter, ReadRows

CLOSE_TIMEOUT_S = 5


class MetricsEndpoint:
    """Serves ``http://HOST:PORT/metrics`` on its own thread.

    Raises:
        ConfigError: The address is in use.
    """

    def __init__(self, address: Endpoint, read_rows: ReadRows) -> None:
        registry = prometheus_client.CollectorRegistry()
        reader = PrometheusMetricReader(registry=registry, cardinality_limits=CARDINALITY_LIMITS)
        self.meter = HostMeter(read_rows, reader)
        try:
            self.server, self.thread = prometheus_client.start_http_server(
                address.port, address.host, registry
            )
        except OSError as error:
            reason = str(error.strerror).lower()
            raise ConfigError(
                "metrics.listener", f"cannot listen on {address.host}:{address.port}: {reason}"
            ) from error
        except UnicodeError as error:
            raise ConfigError("metrics.listener", f"{address.host} does not name a host") from error

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
