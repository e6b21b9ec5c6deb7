"""The settings of one destination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek.endpoints import Credentials, SecretKind, TlsFiles
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """One destination."""

    protocol: OtlpProtocol
    target: str
    """The whole URL for HTTP, ``host:port`` for gRPC."""
    secure: bool
    """TLS."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case. May hold secrets."""
    secrets: Mapping[SecretKind, Path] = field(default_factory=dict)
    compression: Compression = Compression.NONE
    timeout_ms: int = 10_000
    """Time limit of one request, including the connection."""
    connect_timeout_ms: int = 5_000
    requests_in_flight: int = 4
    """Limit of concurrent requests; a batch of up to 40 pushes and 1 MiB is one request."""
    metrics: tuple[str, ...] = ()
    """Prefixes of the names of the metrics to send; empty for all metrics."""
    distinct_labels: bool = True
    """Rename labels of Resources that have the name of an attribute of a data point."""
    totals: TotalsSettings | None = None
    """For cumulative values; None for delta values, as the clients send them."""

    def credentials(self) -> Credentials:
        """The headers, with secrets read from their files.

        Raises:
            OSError, BadSecret: A file is unreadable or malformed.
        """
        return Credentials(self.headers, self.secrets)
