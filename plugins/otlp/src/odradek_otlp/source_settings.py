"""The settings of the source, read from the table ``source`` inside the plugin's table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.endpoints import Address, ListenerTls, read_address, read_listener_tls, read_token_file
from odradek.plugin import PluginConfig

HTTP_LISTENER: Final = "source.http.listener"
GRPC_LISTENER: Final = "source.grpc.listener"
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The listeners, and what they have in common."""

    http: Address | None = None
    grpc: Address | None = None
    tls: ListenerTls | None = None
    token_file: Path | None = None
    """With it each request needs one of its tokens."""
    request_max_bytes: int = 16 * MIB
    """Of one request, decompressed."""
    json_max_bytes: int = MIB // 2
    """Of one request in JSON, decompressed. While it is read, it takes up to 25 times as much memory."""
    message_max_bytes: int = 4 * MIB
    """Of one message of gRPC as it is sent, which is held before it is read."""
    request_timeout_ms: int = 30_000
    """For the body of a request, and for a TLS handshake."""
    idle_timeout_ms: int = 75_000
    """A connection without a request is closed."""
    requests_max: int = 256
    """Being received or stored."""
    resources_max: int = 1_000
    """Different Resources in one request."""
    buffer_max_bytes: int = 64 * MIB
    """Of all requests that are being received or stored."""
    connections_max: int = 1_000
    """Of each listener."""
    connections_max_per_ip: int = 500
    """Of one address at the listener of HTTP."""
    interval_ms: int = 60_000
    """Stands for the push interval, which senders of OTLP do not tell."""

    @property
    def security_protocol(self) -> str:
        return "SSL" if self.tls is not None else "PLAINTEXT"


def read_source_settings(config: PluginConfig) -> SourceSettings:
    """Read the table, which has a listener.

    Raises:
        ConfigError: A value is invalid; names the key.
    """

    def integer(key: str, default: int, least: int = 1, most: int = 1 << 62) -> int:
        return config.integer(f"source.{key}", default, least=least, most=most)

    defaults = SourceSettings()
    settings = SourceSettings(
        http=read_address(config, HTTP_LISTENER),
        grpc=read_address(config, GRPC_LISTENER),
        tls=read_listener_tls(config, "source.tls."),
        token_file=read_token_file(config, "source.token.file"),
        request_max_bytes=integer("request.max.bytes", defaults.request_max_bytes, most=1 << 30),
        json_max_bytes=integer("json.max.bytes", defaults.json_max_bytes, most=1 << 30),
        message_max_bytes=integer("grpc.message.max.bytes", defaults.message_max_bytes, most=1 << 30),
        request_timeout_ms=integer("request.timeout.ms", defaults.request_timeout_ms),
        idle_timeout_ms=integer("idle.timeout.ms", defaults.idle_timeout_ms),
        requests_max=integer("requests.max", defaults.requests_max),
        resources_max=integer("resources.max", defaults.resources_max),
        buffer_max_bytes=integer("buffer.max.bytes", defaults.buffer_max_bytes),
        connections_max=integer("connections.max", defaults.connections_max),
        connections_max_per_ip=integer("connections.max.per.ip", defaults.connections_max_per_ip),
        interval_ms=integer("interval.ms", defaults.interval_ms),
    )
    if settings.buffer_max_bytes < settings.request_max_bytes:
        raise config.error("source.buffer.max.bytes", "expected at least source.request.max.bytes")
    return settings
