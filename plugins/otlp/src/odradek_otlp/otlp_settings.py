"""The settings of one destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek.endpoints import Credentials, SecretKind, TlsFiles
from odradek.plugin import ConfigError
from odradek.settings import INT, LONG, TEXT, Choice, Flag, Items, Whole, declare
from odradek.temporality import TotalsSettings


class OtlpProtocol(StrEnum):
    """The protocol of an endpoint. ``http/json`` is not offered: payloads are forwarded undecoded."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


class Compression(StrEnum):
    """Compression of the request body. zstd is for HTTP only: the gRPC library lacks it."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


def each_or_all(prefixes: Sequence[str]) -> tuple[str, ...]:
    """The prefixes; none of them if ``*`` is among them."""
    return () if "*" in prefixes else tuple(prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """The address of a destination."""

    # fmt: off
    endpoint: str = declare(
        "endpoint", TEXT, "",
        "HTTP: base URL, to which `/v1/metrics` is appended if it is missing. gRPC: `http://host:port` "
        "without TLS, `https://host:port` with TLS, `host:port` with TLS unless `insecure`.",
        unset="none: the plugin is inactive",
    )
    insecure: bool = declare(
        "insecure", Flag(), False, "gRPC: no TLS for an endpoint without `http://` or `https://`.",
    )
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """One destination."""

    target: str = ""
    """The whole URL for HTTP, ``host:port`` for gRPC."""
    secure: bool = False
    """TLS."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case. May hold secrets."""
    secrets: Mapping[SecretKind, Path] = field(default_factory=dict)
    totals: TotalsSettings | None = None
    """For cumulative values; None for delta values, as the clients send them."""
    # fmt: off
    protocol: OtlpProtocol = declare(
        "protocol", Choice({each.value: each for each in OtlpProtocol}), OtlpProtocol.HTTP,
        "The protocol of the endpoint.",
    )
    compression: Compression = declare(
        "compression", Choice({each.value: each for each in Compression}), Compression.NONE,
        "Compression of a request; `zstd` for HTTP only, and not every endpoint accepts it.",
    )
    timeout_ms: int = declare(
        "timeout.ms", Whole(LONG, 1), 10_000, "Time limit of one request, including the connection.",
        unit="ms",
    )
    connect_timeout_ms: int = declare(
        "connect.timeout.ms", Whole(LONG, 1), 5_000,
        "Time limit of one connection with its TLS handshake; at most `timeout.ms`.", unit="ms",
    )
    requests_in_flight: int = declare(
        "requests.in.flight", Whole(INT, 1, 100), 4,
        "Limit of concurrent requests: a batch of more than 40 pushes or 1 MiB is split into up to this "
        "many; all pushes of a client instance are in one request, in order.", unit="requests",
    )
    metrics: Sequence[str] = declare(
        "metrics", Items(collect=each_or_all), (),
        'Prefixes of the names of the metrics to send: `["org.apache.kafka.producer."]`.', unset="all",
    )
    distinct_labels: bool = declare(
        "labels.distinct", Flag(), True,
        "A label that has the name of an attribute of a data point is renamed for that point: [labels and "
        "attributes](../../host/docs/howto/enrich-labels.md#labels-and-attributes-of-the-same-name). "
        "`false`: Resources are sent unchanged, for an endpoint that keeps them apart from attributes.",
    )
    # fmt: on

    def check(self) -> None:
        """Refuse an empty prefix, and zstd for gRPC.

        Raises:
            ConfigError: One is there.
        """
        if not all(self.metrics):
            raise ConfigError("metrics", "expected prefixes of metric names, found an empty one")
        if self.protocol is OtlpProtocol.GRPC and self.compression is Compression.ZSTD:
            raise ConfigError("compression", "expected none or gzip for grpc, found 'zstd'")

    def credentials(self) -> Credentials:
        """The headers, with secrets read from their files.

        Raises:
            OSError, BadSecret: A file is unreadable or malformed.
        """
        return Credentials(self.headers, self.secrets)
