"""The settings of listeners: addresses, advertised addresses and security protocols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from odradek.broker.broker_settings import Endpoint
from odradek.net.listener import ListenerAddress
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import Special
from odradek.wire.config_resource import ConfigType

LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
PROTOCOL_MAP = "listener.security.protocol.map"
PLAINTEXT, SASL_PLAINTEXT, SSL, SASL_SSL = "PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"
SECURITY_PROTOCOLS = (PLAINTEXT, SASL_PLAINTEXT, SSL, SASL_SSL)
WITH_SASL = (SASL_PLAINTEXT, SASL_SSL)
WITH_TLS = (SSL, SASL_SSL)
LISTENER_TEXT = re.compile(
    r"(?P<name>[A-Z][A-Z0-9_]*)://(?P<host>\[[0-9A-Fa-f:.%]*\]|[^\s:/\[\]]*):(?P<port>\d{1,5})"
)
EVERY_ADDRESS = ("", "0.0.0.0", "::")


def read_addresses(table: PluginConfig, key: str) -> tuple[ListenerAddress, ...]:
    """Return the addresses of a list; their names are distinct.

    Raises:
        ConfigError: An address is not of the form NAME://HOST:PORT, or a name occurs twice.
    """
    texts = table.texts(key)
    addresses = tuple(listener_address(table, key, text) for text in texts)
    if len({address.name for address in addresses}) < len(addresses):
        raise table.error(key, f"expected listeners with different names, found {','.join(texts)!r}")
    return addresses


def listener_address(table: PluginConfig, key: str, text: str) -> ListenerAddress:
    """Return one listener's address.

    Raises:
        ConfigError: The text is not of the form NAME://HOST:PORT.
    """
    match = LISTENER_TEXT.fullmatch(text)
    if match is None or int(match["port"]) > 65_535:
        raise table.error(key, f"expected NAME://HOST:PORT, found {text!r}")
    return ListenerAddress(match["name"], match["host"].strip("[]"), int(match["port"]))


def read_protocols(table: PluginConfig, key: str) -> dict[str, str]:
    """Return the security protocol by listener name.

    Raises:
        ConfigError: A protocol is unknown, or a listener occurs twice.
    """
    protocols: dict[str, str] = {}
    for text in table.texts(key):
        name, _, protocol = text.partition(":")
        if protocol not in SECURITY_PROTOCOLS or not name or name in protocols:
            raise table.error(
                key, f"expected NAME:PROTOCOL with one of {', '.join(SECURITY_PROTOCOLS)}, found {text!r}"
            )
        protocols[name] = protocol
    return protocols


ADDRESSES = Special(type=ConfigType.LIST, shape="list", read=read_addresses)
PROTOCOLS = Special(
    type=ConfigType.STRING,
    shape="list",
    read=read_protocols,
    text=lambda protocols: ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
)


def secured(
    listeners: Sequence[ListenerAddress], protocols: Mapping[str, str]
) -> tuple[ListenerAddress, ...]:
    """Return the listeners with their security protocols: from the map, or from the start of their names.

    Raises:
        ConfigError: There is no listener, or a listener has no protocol.
    """
    if not listeners:
        raise ConfigError(LISTENERS, "expected one or more listeners, found none")
    found = []
    for listener in listeners:
        protocol = security_protocol(listener.name, protocols)
        if protocol is None:
            raise ConfigError(
                LISTENERS,
                f"expected a name that is or begins with one of {', '.join(SECURITY_PROTOCOLS)}, or a name "
                f"in {PROTOCOL_MAP}, found {listener.name!r}",
            )
        found.append(replace(listener, security_protocol=protocol))
    return tuple(found)


def security_protocol(name: str, protocols: Mapping[str, str]) -> str | None:
    """Return the protocol of a listener; None if neither the map nor the name says which."""
    if name in protocols:
        return protocols[name]
    for protocol in SECURITY_PROTOCOLS:
        if name == protocol or name.startswith(f"{protocol}_"):
            return protocol
    return None


def advertised(
    listeners: Sequence[ListenerAddress], addresses: Sequence[ListenerAddress]
) -> dict[str, Endpoint]:
    """Return the advertised addresses, by listener name.

    Raises:
        ConfigError: There is no such listener, an address is none that clients can dial, or a listener on all
            addresses has no advertised address.
    """
    for address in addresses:
        if address.host in EVERY_ADDRESS or not address.port:
            raise ConfigError(ADVERTISED, f"expected an address that clients can dial, found {address}")
    found = {address.name: Endpoint(address.host, address.port) for address in addresses}
    for name in found.keys() - {listener.name for listener in listeners}:
        raise ConfigError(ADVERTISED, f"no listener has the name {name!r}")
    for listener in listeners:
        if listener.host in EVERY_ADDRESS and listener.name not in found:
            raise ConfigError(
                ADVERTISED,
                f"expected an address that clients can use, because {listener} listens on all addresses",
            )
    return found
