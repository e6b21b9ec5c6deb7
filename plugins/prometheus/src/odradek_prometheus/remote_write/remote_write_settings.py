"""The settings of remote write, read from the keys ``remote_write.*`` of the plugin's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from odradek.endpoints import (
    Credentials,
    SecretKind,
    TlsFiles,
    checked_headers,
    read_secrets,
    read_tls_files,
)
from odradek.plugin import PluginConfig
from odradek.settings import INT, LONG, Choice, Special, Whole, declare, read_settings
from odradek.temporality import TotalsSettings, read_cumulative
from odradek_prometheus.label_values import Labels

PREFIX: Final = "remote_write."
AUTO: Final = "auto"
PROTOCOLS: Final = (AUTO, "2.0", "1.0")
VERSION_HEADER: Final = "x-prometheus-remote-write-version"
LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
CERTIFICATES: Final = ("certificate.file", "client.certificate.file", "client.key.file")
JOB: Final = "kafka-clients"


def read_url(table: PluginConfig, key: str) -> str:
    """Read the URL, as it is.

    Raises:
        ConfigError: It is malformed. The error does not repeat a URL that may hold a password.
    """
    text = (table.text(key) or "").strip()
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise table.error(key, "expected no user or password: use basic.auth.file or bearer.token.file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise table.error(key, f"expected http://HOST:PORT/PATH or https://HOST:PORT/PATH, found {text!r}")
    if parts.path in ("", "/"):
        example = f"{parts.scheme}://{parts.netloc}/api/v1/write"
        raise table.error(key, f"expected a URL with the receiver's path, for Prometheus {example!r}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteWriteSettings:
    """One receiver."""

    totals: TotalsSettings = field(default_factory=TotalsSettings)
    labels: Labels = ()
    """Of all series that do not have them."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case. May hold secrets."""
    secrets: Mapping[SecretKind, Path] = field(default_factory=dict)
    # fmt: off
    url: str = declare(
        "url", Special(shape="URL", read=read_url), "",
        "The whole URL of the receiver. A redirect is an error that names the new place: correct the URL.",
        unset="none: nothing is sent",
    )
    protocol: str = declare(
        "protocol", Choice({each: each for each in PROTOCOLS}), AUTO,
        "`auto`: 2.0 until the receiver answers 415, or does not tell how many samples it has stored; from "
        "then on 1.0.",
    )
    timeout_ms: int = declare(
        "timeout.ms", Whole(LONG, 1), 30_000, "Time limit of one request, including the connection.",
        unit="ms",
    )
    connect_timeout_ms: int = declare(
        "connect.timeout.ms", Whole(LONG, 1), 5_000,
        "Time limit of one connection with its TLS handshake; at most `timeout.ms`.", unit="ms",
    )
    requests_in_flight: int = declare(
        "requests.in.flight", Whole(INT, 1, 100), 4,
        "Limit of concurrent requests. The samples of a client are in one of them at a time, so they arrive "
        "in order.", unit="requests",
    )
    samples_per_request: int = declare(
        "samples.per.request", Whole(INT, 1, 100_000), 2_000, "Limit of samples in a request.",
        unit="samples",
    )
    resend_ms: int = declare(
        "resend.ms", Whole(LONG), 60_000,
        "The values of a client with a long push interval are sent again after so long, since Prometheus "
        "looks back for five minutes only; 0: never.", unit="ms",
    )
    # fmt: on

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
    if table.value("url") is None:
        if table.values:
            raise table.error("url", "expected the URL of a receiver for these settings")
        return None
    headers = checked_headers(table, table.table("headers"), lambda name: name == VERSION_HEADER)
    settings = replace(
        read_settings(RemoteWriteSettings, table),
        totals=read_cumulative(table),
        labels=read_labels(table),
        tls=read_tls_files([(table, key) for key in CERTIFICATES]),
        headers=headers,
        secrets=read_secrets(table, headers),
    )
    if settings.tls.paths() and not settings.secure:
        raise table.error("url", "expected https:// with the files of certificates")
    return settings


def read_labels(table: PluginConfig) -> Labels:
    """Labels of all series: those of the table, and ``job``."""
    found = {"job": JOB, **table.table("labels")}
    for name in found:
        if not LABEL_NAME.fullmatch(name) or name.startswith("__"):
            raise table.error(
                f"labels.{name}", "expected a label of letters, digits and _, not beginning with __"
            )
    return tuple(sorted((name, value) for name, value in found.items() if value))
