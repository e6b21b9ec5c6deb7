"""The settings of the source, read from the table ``source`` inside the plugin's table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from odradek.endpoints import Address, ListenerTls, read_address, read_listener_tls, read_token_file
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import INT, LONG, Special, Whole, declare, read_settings

HTTP_LISTENER: Final = "source.http.listener"
GRPC_LISTENER: Final = "source.grpc.listener"
MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The listeners, and what they have in common."""

    # fmt: off
    http: Address | None = declare(
        HTTP_LISTENER, Special(shape="`HOST:PORT`", read=read_address), None,
        "Listener for OTLP/HTTP in protobuf or JSON; the path is `/v1/metrics`.", unset="none",
    )
    grpc: Address | None = declare(
        GRPC_LISTENER, Special(shape="`HOST:PORT`", read=read_address), None,
        "Listener for OTLP/gRPC.", unset="none",
    )
    tls: ListenerTls | None = None
    token_file: Path | None = declare(
        "source.token.file", Special(shape="path of a file", read=read_token_file), None,
        "Bearer tokens, one a line, read for each request, of which a sender needs one.",
        unset="none: everybody may send",
    )
    request_max_bytes: int = declare(
        "source.request.max.bytes", Whole(INT, 1, 1 << 30), 16 * MIB, "Limit of one request, decompressed.",
        unit="bytes",
    )
    json_max_bytes: int = declare(
        "source.json.max.bytes", Whole(INT, 1, 1 << 30), MIB // 2,
        "Limit of one request in JSON, decompressed; while it is read, it takes up to 25 times as much "
        "memory.", unit="bytes",
    )
    message_max_bytes: int = declare(
        "source.grpc.message.max.bytes", Whole(INT, 1, 1 << 30), 4 * MIB,
        "Limit of one message of gRPC, as it is sent; it is held before it is read.", unit="bytes",
    )
    request_timeout_ms: int = declare(
        "source.request.timeout.ms", Whole(LONG, 1), 30_000,
        "Time for the body of a request, and for a TLS handshake.", unit="ms",
    )
    idle_timeout_ms: int = declare(
        "source.idle.timeout.ms", Whole(LONG, 1), 75_000,
        "A connection without a request for this time is closed.", unit="ms",
    )
    requests_max: int = declare(
        "source.requests.max", Whole(LONG, 1), 256, "Limit of requests that are being received or stored.",
        unit="requests",
    )
    resources_max: int = declare(
        "source.resources.max", Whole(LONG, 1), 1_000, "Limit of different Resources in one request.",
        unit="Resources",
    )
    buffer_max_bytes: int = declare(
        "source.buffer.max.bytes", Whole(LONG, 1), 64 * MIB,
        "Limit of the bytes of all requests that are being received or stored; a request without an "
        "announced size counts with its limit until it is read.", unit="bytes",
    )
    connections_max: int = declare(
        "source.connections.max", Whole(LONG, 1), 1_000,
        "Limit of connections of each listener; further ones are closed.", unit="connections",
    )
    connections_max_per_ip: int = declare(
        "source.connections.max.per.ip", Whole(LONG, 1), 500,
        "Limit of connections of one address, or one /64 of IPv6, at the listener of HTTP; raise it if a "
        "proxy brings all requests. gRPC has no such limit.", unit="connections",
    )
    interval_ms: int = declare(
        "source.interval.ms", Whole(LONG, 1), 60_000,
        "Stands for the push interval, which senders do not tell: alarms about silent clients compare with "
        "it.", unit="ms",
    )
    # fmt: on

    @property
    def security_protocol(self) -> str:
        return "SSL" if self.tls is not None else "PLAINTEXT"

    def check(self) -> None:
        """Refuse a buffer that is smaller than a request.

        Raises:
            ConfigError: It is.
        """
        if self.buffer_max_bytes < self.request_max_bytes:
            raise ConfigError("source.buffer.max.bytes", "expected at least source.request.max.bytes")


def read_source_settings(config: PluginConfig) -> SourceSettings:
    """Read the table, which has a listener.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    tls = read_listener_tls(config, "source.tls.")
    return replace(read_settings(SourceSettings, config), tls=tls)
