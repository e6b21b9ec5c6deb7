"""The keys of SASL listeners: which listeners they are, and how their clients authenticate."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.plugin.config import PluginConfig
from odradek.security.sasl_authenticator import MECHANISMS, SaslSettings

SASL_PLAINTEXT = "SASL_PLAINTEXT"
SECURITY_PROTOCOLS = ("PLAINTEXT", SASL_PLAINTEXT)
INT32_MAX = 2**31 - 1


def read_security_protocols(top: PluginConfig) -> dict[str, str]:
    """``listener.security.protocol.map``: by listener name.

    Raises:
        ConfigError: A protocol is none, or a listener is there twice.
    """
    key = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for text in top.texts(key):
        name, _, protocol = text.partition(":")
        if protocol not in SECURITY_PROTOCOLS or not name or name in protocols:
            raise top.error(
                key, f"expected NAME:PROTOCOL, a protocol of {', '.join(SECURITY_PROTOCOLS)}, found {text!r}"
            )
        protocols[name] = protocol
    return protocols


def security_protocol(name: str, protocols: Mapping[str, str]) -> str | None:
    """The protocol of a listener: as the map says, or as its name begins; None if neither does."""
    if name in protocols:
        return protocols[name]
    for protocol in SECURITY_PROTOCOLS:
        if name == protocol or name.startswith(f"{protocol}_"):
            return protocol
    return None


def read_sasl(top: PluginConfig) -> SaslSettings:
    """Kafka's keys for SASL.

    Raises:
        ConfigError: A mechanism is unknown, or there is none.
    """
    defaults = SaslSettings()
    key = "sasl.enabled.mechanisms"
    mechanisms = tuple(top.texts(key, defaults.enabled_mechanisms))
    if not mechanisms or not set(mechanisms) <= set(MECHANISMS):
        found = ",".join(mechanisms)
        raise top.error(key, f"expected one or more of {', '.join(MECHANISMS)}, found {found!r}")
    return SaslSettings(
        enabled_mechanisms=mechanisms,
        failed_authentication_delay_ms=top.integer(
            "connection.failed.authentication.delay.ms", defaults.failed_authentication_delay_ms, 0, INT32_MAX
        ),
        server_max_receive_bytes=top.integer(
            "sasl.server.max.receive.size", defaults.server_max_receive_bytes, 0, INT32_MAX
        ),
    )
