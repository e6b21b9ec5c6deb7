"""Settings of the host's own metrics: the endpoint for Prometheus, and the collector they are pushed to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import LONG, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

ENDPOINT = "metrics.otlp.endpoint"
METRICS_PATH = "/v1/metrics"
SCHEMES = ("http", "https")
METRICS_LISTENER = "metrics"
"""The name that the certificates of an https address have: ``listener.name.metrics.ssl...``."""


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """The address of the endpoint for Prometheus."""

    host: str
    port: int
    """0 takes any free port."""
    scheme: str = "http"

    def at(self, port: int) -> str:
        """The URL with the port that was bound."""
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{port}"

    def __str__(self) -> str:
        return self.at(self.port)


def read_listener(table: PluginConfig, key: str) -> MetricsAddress | None:
    """Return the address of the endpoint for Prometheus; None for an empty text.

    Raises:
        ConfigError: The text is not of the form http://HOST:PORT or https://HOST:PORT.
    """
    text = table.text(key)
    if not text:
        return None
    parts = split(text)
    if parts is None or parts.scheme not in SCHEMES or parts.port is None or parts.path not in ("", "/"):
        raise table.error(key, f"expected http://HOST:PORT or https://HOST:PORT, found {text!r}")
    return MetricsAddress(parts.hostname or "", parts.port, parts.scheme)


def read_token(table: PluginConfig, key: str) -> str | None:
    """Return the bearer token that Prometheus must send. Errors do not quote it.

    Raises:
        ConfigError: It is empty, or HTTP cannot carry it.
    """
    token = table.text(key)
    if token is not None and not (token.isascii() and token.isprintable() and token and " " not in token):
        raise table.error(key, "expected a token of visible ASCII characters")
    return token


def read_endpoint(table: PluginConfig, key: str) -> str | None:
    """Return the URL of a collector; None for an empty text.

    Raises:
        ConfigError: The text is not the URL of a host.
    """
    endpoint = table.text(key)
    if not endpoint:
        return None
    parts = split(endpoint)
    if parts is None or parts.scheme not in SCHEMES or "@" in parts.netloc or parts.query:
        raise table.error(key, "expected http://HOST:PORT or https://HOST:PORT, with a path or without")
    return endpoint


def read_headers(table: PluginConfig, key: str) -> dict[str, str]:
    """Return the headers of a push. Errors do not quote the text, which may be a password.

    Raises:
        ConfigError: One is not of the form NAME=VALUE.
    """
    headers = {}
    for number, text in enumerate(table.texts(key), 1):
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not (name + value).isprintable() or not text.isascii():
            raise table.error(key, f"expected NAME=VALUE in printable ASCII, but header {number} is not")
        headers[name.strip()] = value.strip()
    return headers


def split(text: str) -> SplitResult | None:
    """Return the parts of a URL that names a host; None if it does not."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018  checks it
    except ValueError:
        return None
    return parts if parts.hostname else None


TOKEN_KIND = Special(type=ConfigType.PASSWORD, shape="text", read=read_token)
LISTENER_KIND = Special(type=ConfigType.STRING, shape="text", read=read_listener)
HEADERS_KIND = Special(type=ConfigType.LIST, shape="list", read=read_headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPushSettings:
    """The collector that the host's own metrics are pushed to, and the interval."""

    # fmt: off
    endpoint: str | None = setting(
        ENDPOINT, Special(type=ConfigType.STRING, shape="text", read=read_endpoint), None,
        "`http://HOST:PORT` or `https://HOST:PORT` of a collector that receives the host's own metrics over "
        "OTLP/HTTP; `/v1/metrics` is appended.", unset="off", page="metrics.md",
    )
    interval_ms: int = setting(
        "metrics.otlp.interval.ms", Whole(LONG, 100), 60_000,
        "How often the host's own metrics are pushed.", unit="ms",
    )
    headers: Mapping[str, str] = setting(
        "metrics.otlp.headers", HEADERS_KIND, {},
        "HTTP headers of every push, as `NAME=VALUE`.", unset="none", sensitive=True,
    )
    # fmt: on

    @property
    def url(self) -> str:
        """The URL that metrics are posted to, if there is an endpoint."""
        base = (self.endpoint or "").rstrip("/")
        return base if base.endswith(METRICS_PATH) else base + METRICS_PATH
