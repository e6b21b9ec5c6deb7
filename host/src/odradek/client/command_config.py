"""``--command-config FILE``: the properties file of Kafka's tools, limited to the keys this client uses."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.client.admin import AdminClient
from odradek.plugin.config import ConfigError, PluginConfig

if TYPE_CHECKING:
    from odradek.client.sasl import SaslLogin
    from odradek.client.tls_config import ClientTls

DEFAULT_CLIENT_ID = "odradek"
DEFAULT_TIMEOUT_MS = 30_000
"""The timeout of Kafka's own tools."""
SASL_PLAINTEXT, SSL, SASL_SSL = "SASL_PLAINTEXT", "SSL", "SASL_SSL"
PROTOCOLS = ("PLAINTEXT", SASL_PLAINTEXT, SSL, SASL_SSL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """The keys that this client uses. Other keys are ignored, as Kafka's tools ignore unknown ones."""

    client_id: str = DEFAULT_CLIENT_ID
    request_timeout_ms: int = DEFAULT_TIMEOUT_MS
    login: SaslLogin | None = None
    tls: ClientTls | None = None
    table: PluginConfig = field(default_factory=lambda: PluginConfig("--command-config", {}), compare=False)
    """The whole file, for commands that use more keys."""

    def admin(self, servers: str, timeout_ms: int | None = None) -> AdminClient:
        """A client with the certificates and secrets of now.

        Args:
            servers: Addresses of the brokers, separated by commas.
            timeout_ms: Overrides ``request.timeout.ms``.

        Raises:
            ConfigError: A file of TLS or the list of addresses is not usable.
        """
        timeout_s = (timeout_ms or self.request_timeout_ms) / 1000
        return AdminClient(servers, self.client_id, timeout_s, self.login, self.context())

    def context(self) -> ssl.SSLContext | None:
        """Read the files of TLS; None without TLS.

        Raises:
            ConfigError: A file is not usable.
        """
        return None if self.tls is None else self.tls.context()


def load_command_config(path: Path | None) -> CommandConfig:
    """Read the file; return the defaults if there is none.

    Raises:
        ConfigError: The file cannot be read, or requires something that this client does not support.
    """
    if path is None:
        return CommandConfig()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--command-config {path}", f"cannot be read: {error}") from error
    # settings and security are a third of the CPU of a command, and most commands have no file
    from odradek.client.sasl_config import sasl_login
    from odradek.client.tls_config import client_tls
    from odradek.settings.properties import properties

    config = PluginConfig(str(path), properties(text))
    protocol = config.choice("security.protocol", "PLAINTEXT", PROTOCOLS)
    return CommandConfig(
        client_id=config.text("client.id") or DEFAULT_CLIENT_ID,
        request_timeout_ms=config.integer("request.timeout.ms", DEFAULT_TIMEOUT_MS, least=1),
        login=sasl_login(config) if protocol in (SASL_PLAINTEXT, SASL_SSL) else None,
        tls=client_tls(config) if protocol in (SSL, SASL_SSL) else None,
        table=config,
    )
