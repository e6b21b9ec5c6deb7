"""The settings of remote write, read from the keys ``remote_write.*`` of the plugin's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from odradek.endpoints import OURS, Credentials, SecretKind, TlsFiles, read_secrets, read_tls_files
from odradek.plugin import PluginConfig
from odradek.temporality import TotalsSettings, read_cumulative
from odradek_prometheus.label_values import Labels

PREFIX: Final = "remote_write."
AUTO: Final = "auto"
PROTOCOLS: Final = (AUTO, "2.0", "1.0")
HEADER_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")
LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
CERTIFICATES: Final = ("certificate.file", "client.certificate.file", "client.key.file")
JOB: Final = "kafka-clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWriteSettings:
    """One receiver."""

    url: str
    totals: TotalsSettings
    protocol: str = AUTO
    labels: Labels = ()
    """Of all series that do not have them."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case. May hold secrets."""
    secrets: Mapping[SecretKind, Path] = field(default_factory=dict)
    timeout_ms: int = 30_000
    """Time limit of one request, including the connection."""
    connect_timeout_ms: int = 5_000
    requests_in_flight: int = 4
    """Limit of concurrent requests; the samples of a client are in one request at a time."""
    samples_per_request: int = 2_000
    resend_ms: int = 60_000
    """A live series without a new value is sent again after so long; 0 for never."""

    @property
    def secure(self) -> bool:
        """TLS."""
        return self.url.startswith("https:")

    def credentials(self) -> Credentials:
        """The headers, with secrets read from their files.

        Raises:
            OSError, BadSecret: A file is unreadable or malformed.
        """
        return Credentials(self.headers, self.secrets)


def read_remote_write(config: PluginConfig) -> RemoteWriteSettings | None:
    """Read the keys; None without ``remote_write.url``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    values = {
        key.removeprefix(PREFIX): value for key, value in config.values.items() if key.startswith(PREFIX)
    }
    config.known.update(key for key in config.values if key.startswith(PREFIX))
    table = PluginConfig(f"{config.path}.{PREFIX}".rstrip("."), values)
    found = read_table(table)
    table.finish()
    return found


def read_table(table: PluginConfig) -> RemoteWriteSettings | None:
    url = table.text("url")
    if url is None:
        if table.values:
            raise table.error("url", "expected the URL of a receiver for these settings")
        return None
    headers = read_headers(table)
    tls = read_tls_files([(table, key) for key in CERTIFICATES])
    timeout_ms = table.integer("timeout.ms", 30_000, least=1)
    settings = RemoteWriteSettings(
        url=read_url(table, url),
        totals=read_cumulative(table),
        protocol=table.choice("protocol", AUTO, PROTOCOLS),
        labels=read_labels(table),
        tls=tls,
        headers=headers,
        secrets=read_secrets(table, headers),
        timeout_ms=timeout_ms,
        connect_timeout_ms=table.integer("connect.timeout.ms", min(timeout_ms, 5_000), least=1),
        requests_in_flight=table.integer("requests.in.flight", 4, least=1, most=100),
        samples_per_request=table.integer("samples.per.request", 2_000, least=1, most=100_000),
        resend_ms=table.integer("resend.ms", 60_000),
    )
    if tls.paths() and not settings.secure:
        raise table.error("url", "expected https:// with the files of certificates")
    return settings


def read_url(table: PluginConfig, text: str) -> str:
    """The URL, as it is.

    Raises:
        ConfigError: It is malformed. The error does not repeat a URL that may hold a password.
    """
    parts = urlsplit(text.strip())
    if "@" in parts.netloc:
        raise table.error("url", "expected no user or password: use basic.auth.file or bearer.token.file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise table.error("url", f"expected http://HOST:PORT/PATH or https://HOST:PORT/PATH, found {text!r}")
    if parts.path in ("", "/"):
        example = f"{parts.scheme}://{parts.netloc}/api/v1/write"
        raise table.error("url", f"expected a URL with the receiver's path, for Prometheus {example!r}")
    return text.strip()


def read_labels(table: PluginConfig) -> Labels:
    """Labels of all series: those of the table, and ``job``."""
    found = {"job": JOB, **table.table("labels")}
    for name in found:
        if not LABEL_NAME.fullmatch(name) or name.startswith("__"):
            raise table.error(
                f"labels.{name}", "expected a label of letters, digits and _, not beginning with __"
            )
    return tuple(sorted((name, value) for name, value in found.items() if value))


def read_headers(table: PluginConfig) -> dict[str, str]:
    """The headers of the table. An error never shows a value: it may be a secret."""
    found = {}
    for name, value in table.table("headers").items():
        lower = name.lower()
        if not HEADER_NAME.fullmatch(lower):
            raise table.error(f"headers.{name}", f"expected the name of a header, found {name!r}")
        if lower in OURS or lower == "x-prometheus-remote-write-version":
            raise table.error(f"headers.{name}", f"the plugin sets the header {lower} itself: remove it")
        if not HEADER_VALUE.fullmatch(value):
            raise table.error(f"headers.{name}", f"expected printable ASCII in the value of {lower}")
        found[lower] = value
    return found
