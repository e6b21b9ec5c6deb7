"""Where to send, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek_otlp.credentials import Credentials, SecretKind
from odradek_otlp.tls_files import TlsFiles


class OtlpProtocol(StrEnum):
    """``http/json`` is not offered: the payloads are forwarded as the bytes they are."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


class Compression(StrEnum):
    """Of the request body. zstd is for HTTP only, gRPC's library has none; not every endpoint takes it."""

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
    """For one request, the connection included."""
    connect_timeout_ms: int = 5_000
    requests_in_flight: int = 4
    """At most; a batch of up to 40 pushes and 1 MiB is one request."""
    metrics: tuple[str, ...] = ()
    """Prefixes of names; empty: all metrics."""

    def credentials(self) -> Credentials:
        """The headers, with the secrets read.

        Raises:
            OSError, BadSecret: A file cannot be used.
        """
        return Credentials(self.headers, self.secrets)
