"""The metrics of the certificates of TLS listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odradek.metrics.metric import MetricRow, Metrics

if TYPE_CHECKING:
    from odradek.net.listener_tls import ListenerTls

CERTIFICATES: Metrics[ListenerTls, int] = Metrics("odradek.certificate", "listener")
CERTIFICATES.gauge(
    "expiry", "d", "Days until the certificate of a listener expires", lambda it, now_ms: it.days_left(now_ms)
)
CERTIFICATES.counter("reloads", "{reload}", "Certificates loaded while the host ran")
CERTIFICATES.counter("reload.failures", "{reload}", "Certificates that could not be loaded", "failed_reloads")
CERTIFICATES.gauge("stale", "1", "1 while the newest certificate could not be loaded", "is_stale")


def certificate_rows(listeners: Mapping[str, ListenerTls], now_ms: int) -> Iterator[MetricRow]:
    """The certificate and the reloads of each TLS listener."""
    for name, tls in listeners.items():
        yield from CERTIFICATES.rows(tls, now_ms, listener=name)
