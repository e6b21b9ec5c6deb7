"""``--command-config FILE``: the properties file of Kafka's tools, limited to the keys this client uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from odradek.client.sasl import MECHANISMS, SaslLogin
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.properties import properties

DEFAULT_CLIENT_ID = "odradek"
DEFAULT_TIMEOUT_MS = 30_000
"""The timeout of Kafka's own tools."""
SASL_PLAINTEXT = "SASL_PLAINTEXT"
JAAS_OPTION = re.compile(
    r'\b(?P<key>username|password)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s";]+))'
)
"""An option of a Kafka login module, as in ``ScramLoginModule required username="x" password="y";``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """The keys that this client uses. Other keys are ignored, as Kafka's tools ignore unknown ones."""

    client_id: str = DEFAULT_CLIENT_ID
    request_timeout_ms: int = DEFAULT_TIMEOUT_MS
    login: SaslLogin | None = None


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
    config = PluginConfig(str(path), properties(text))
    protocol = config.choice("security.protocol", "PLAINTEXT", ["PLAINTEXT", SASL_PLAINTEXT])
    return CommandConfig(
        client_id=config.text("client.id") or DEFAULT_CLIENT_ID,
        request_timeout_ms=config.integer("request.timeout.ms", DEFAULT_TIMEOUT_MS, least=1),
        login=sasl_login(config) if protocol == SASL_PLAINTEXT else None,
    )


def sasl_login(config: PluginConfig) -> SaslLogin:
    """Read the credentials from ``sasl.username`` and ``sasl.password``, or from ``sasl.jaas.config``.

    librdkafka has the first two keys, the Java client the third.

    Raises:
        ConfigError: The user name or password is missing, or the mechanism is not supported.
    """
    mechanism = config.text("sasl.mechanism") or ""
    if mechanism not in MECHANISMS:
        raise config.error("sasl.mechanism", f"expected one of {', '.join(MECHANISMS)}, found {mechanism!r}")
    jaas = jaas_options(config.text("sasl.jaas.config") or "")
    user = config.text("sasl.username") or jaas.get("username")
    password = config.text("sasl.password") or jaas.get("password")
    if not user or not password:
        raise config.error(
            "sasl.jaas.config", "expected username and password, here or as sasl.username and sasl.password"
        )
    return SaslLogin(mechanism, user, password)


def jaas_options(text: str) -> dict[str, str]:
    """The user name and password in the options of a login module."""
    return {
        found["key"]: found["bare"] or re.sub(r"\\(.)", r"\1", found["quoted"])
        for found in JAAS_OPTION.finditer(text)
    }
