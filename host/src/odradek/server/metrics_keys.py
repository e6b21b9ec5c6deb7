"""The keys of the host's own metrics: where Prometheus may ask, and where they are pushed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from odradek.broker.broker import Endpoint
from odradek.plugin.config import PluginConfig

LISTENER, ENDPOINT, HEADERS = "metrics.listener", "metrics.otlp.endpoint", "metrics.otlp.headers"
METRICS_PATH = "/v1/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPushSettings:
    """Where the host's own metrics are pushed, and how often."""

    url: str
    interval_ms: int
    headers: Mapping[str, str]


def read_metrics_listener(top: PluginConfig) -> Endpoint | None:
    """``metrics.listener``: where Prometheus may ask, off by default."""
    text = top.text(LISTENER)
    if not text:
        return None
    parts = split(text)
    if parts is None or parts.scheme != "http" or parts.port is None or parts.path not in ("", "/"):
        raise top.error(LISTENER, f"expected http://HOST:PORT, found {text!r}")
    return Endpoint(parts.hostname or "", parts.port)


def read_metrics_push(top: PluginConfig) -> MetricsPushSettings | None:
    """``metrics.otlp.*``: where an OpenTelemetry collector is, off by default."""
    endpoint = top.text(ENDPOINT)
    interval_ms = top.integer("metrics.otlp.interval.ms", 60_000, 100)
    headers = read_headers(top)
    if not endpoint:
        return None
    parts = split(endpoint)
    if parts is None or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query:
        raise top.error(ENDPOINT, "expected http://HOST:PORT or https://HOST:PORT, with a path or without")
    url = endpoint.rstrip("/")
    url = url if url.endswith(METRICS_PATH) else url + METRICS_PATH
    return MetricsPushSettings(url=url, interval_ms=interval_ms, headers=headers)


def split(text: str) -> SplitResult | None:
    """The parts of a URL that names a host; None if it does not."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  checks it
    except ValueError:
        return None
    return parts if parts.hostname else None


def read_headers(top: PluginConfig) -> dict[str, str]:
    """``metrics.otlp.headers``: ``NAME=VALUE`` each. What is wrong is not repeated: it may be a password."""
    headers = {}
    for number, text in enumerate(top.texts(HEADERS), 1):
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not (name + value).isprintable() or not text.isascii():
            raise top.error(HEADERS, f"expected NAME=VALUE in printable ASCII, number {number} is not")
        headers[name.strip()] = value.strip()
    return headers
