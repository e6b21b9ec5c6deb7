"""The settings of the source, read from the table ``source`` inside the plugin's table."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from odradek.plugin import PluginConfig

LISTENER = "source.http.listener"
ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})")
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """One listener for OTLP/HTTP."""

    host: str
    port: int
    """0 chooses a free one."""
    certificate: Path | None = None
    """With it the listener speaks TLS."""
    key: Path | None = None
    token_file: Path | None = None
    """With it each request needs one of its tokens."""
    request_max_bytes: int = 16 << 20
    """Of one request, decompressed."""
    buffer_max_bytes: int = 64 << 20
    """Of all requests that are being received or stored."""
    connections_max: int = 1_000
    interval_ms: int = 60_000
    """Stands for the push interval, which senders of OTLP do not tell."""

    @property
    def security_protocol(self) -> str:
        return "SSL" if self.certificate is not None else "PLAINTEXT"

    def tls(self) -> ssl.SSLContext | None:
        """The context of the listener; None without TLS.

        Raises:
            OSError: A file is unreadable, not PEM or encrypted, or the key does not match.
        """
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Without a password argument OpenSSL would ask for one on the terminal.
        context.load_cert_chain(self.certificate, self.key, password="")
        return context


def read_source_settings(config: PluginConfig) -> SourceSettings:
    """Read the table, which has ``source.http.listener``.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    host, port = address(config)
    request_max_bytes = config.integer("source.request.max.bytes", 16 << 20, least=1, most=1 << 30)
    settings = SourceSettings(
        host=host,
        port=port,
        certificate=config.file("source.tls.certificate"),
        key=config.file("source.tls.key"),
        token_file=config.file("source.token.file"),
        request_max_bytes=request_max_bytes,
        buffer_max_bytes=config.integer("source.buffer.max.bytes", 64 << 20, least=1),
        connections_max=config.integer("source.connections.max", 1_000, least=1),
        interval_ms=config.integer("source.interval.ms", 60_000, least=1),
    )
    if settings.buffer_max_bytes < request_max_bytes:
        raise config.error("source.buffer.max.bytes", "expected at least source.request.max.bytes")
    if settings.key is not None and settings.certificate is None:
        raise config.error("source.tls.certificate", "expected the certificate of source.tls.key")
    try:
        settings.tls()
    except (OSError, ValueError) as error:
        raise config.error("source.tls.certificate", str(error)) from None
    if settings.token_file is not None:
        try:
            read_tokens(settings.token_file)
        except (OSError, ValueError) as error:
            raise config.error("source.token.file", str(error)) from None
    return settings


def address(config: PluginConfig) -> tuple[str, int]:
    """Read the address of the listener."""
    text = config.text(LISTENER) or ""
    found = ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > MAX_PORT:
        raise config.error(LISTENER, f"expected HOST:PORT, found {text!r}")
    return found["host"].strip("[]"), int(found["port"])


def read_tokens(path: Path) -> list[bytes]:
    """The tokens of a file, one a line.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has no token.
    """
    tokens = path.read_bytes().split()
    if not tokens:
        raise ValueError(f"{path} has no token")
    return tokens
