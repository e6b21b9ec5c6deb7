"""The metrics of the certificates of TLS listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odradek.meters.instrument import Instrument
from odradek.telemetry.client_metrics_stats import MetricRow

if TYPE_CHECKING:
    from odradek.net.listener_tls import ListenerTls

CERTIFICATE_INSTRUMENTS = {
    "certificate-expiry": Instrument(
        "odradek.certificate.expiry", "gauge", "d", "Days until the certificate of a listener expires"
    ),
    "certificate-reloads": Instrument(
        "odradek.certificate.reloads", "counter", "{reload}", "Certificates loaded while the host ran"
    ),
    "certificate-reload-failures": Instrument(
        "odradek.certificate.reload.failures", "counter", "{reload}", "Certificates that could not be loaded"
    ),
    "certificate-stale": Instrument(
        "odradek.certificate.stale", "gauge", "1", "1 while the newest certificate could not be loaded"
    ),
}
"""By row name."""


def certificate_rows(listeners: Mapping[str, ListenerTls], now_ms: int) -> Iterator[MetricRow]:
    """The certificate and the reloads of each TLS listener."""
    for name, tls in listeners.items():
        labels = {"listener": name}
        yield MetricRow("certificate-expiry", "gauge", labels, tls.days_left(now_ms))
        yield MetricRow("certificate-reloads", "counter", labels, tls.reloads)
        yield MetricRow("certificate-reload-failures", "counter", labels, tls.failed_reloads)
        yield MetricRow("certificate-stale", "gauge", labels, int(tls.is_stale))
