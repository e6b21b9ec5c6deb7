"""The kinds of values that the settings of the console have."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final
from urllib.parse import urlsplit

from odradek.client.address import addresses
from odradek.endpoints import read_address
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import LIST, LONG, Special, Whole

Network = IPv4Network | IPv6Network
MOST_PROGRAMS: Final = 50
COUNT: Final = Whole(LONG, 1)
MILLISECONDS: Final = Whole(LONG, 1, 999_999_999_999)


def seconds(config: PluginConfig, key: str) -> float:
    return MILLISECONDS.read(config, key) / 1000


def servers(config: PluginConfig, key: str) -> str | None:
    text = config.text(key)
    try:
        addresses(text or "")
    except ConfigError as error:
        raise config.error(key, error.problem) from None
    return text


def networks(config: PluginConfig, key: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(text) for text in config.texts(key))
    except ValueError as error:
        raise config.error(key, f"expected an address or a network such as 10.0.0.0/8: {error}") from None


def hosts(config: PluginConfig, key: str) -> tuple[str, ...]:
    return tuple(text.strip("[]").lower() for text in config.texts(key))


def site(config: PluginConfig, key: str) -> str:
    """The address of a site, without a slash at its end."""
    text = config.text(key)
    return checked_site(config, key, text) if text else ""


def sites(config: PluginConfig, key: str) -> tuple[str, ...]:
    found = config.texts(key)
    if len(found) > MOST_PROGRAMS:
        raise config.error(key, f"expected at most {MOST_PROGRAMS}, found {len(found)}")
    return tuple(checked_site(config, key, text) for text in found)


def checked_site(config: PluginConfig, key: str, text: str) -> str:
    if not is_site(text):
        found = "a user" if "@" in text else repr(text)  # whose password no message shows
        raise config.error(key, f"expected http://HOST or https://HOST, with a path or none, found {found}")
    return text.rstrip("/")


def is_site(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address, or no such port
        return False
    is_plain = text.isprintable() and not set(text) & set(" ?#@")
    return parts.scheme in ("http", "https") and has_host and is_plain


SECONDS: Final = Special(
    type=LONG, shape=MILLISECONDS.shape, read=seconds, text=lambda value: f"{value * 1000:.0f}"
)
"""A key in milliseconds whose value is in seconds."""
SERVERS: Final = Special(shape="`HOST:PORT[,...]`", metavar="HOST:PORT[,...]", read=servers)
LISTENER: Final = Special(shape="`HOST:PORT`", metavar="HOST:PORT", read=read_address, text=str)
NETWORKS: Final = Special(type=LIST, shape="list of addresses and networks", metavar="NETWORK", read=networks)
HOSTS: Final = Special(type=LIST, shape="list", metavar="HOST", read=hosts)
SITE: Final = Special(shape="URL", metavar="URL", read=site)
SITES: Final = Special(type=LIST, shape="list of URLs", metavar="URL", read=sites)
ISSUER: Final = Special(shape="URL", metavar="URL", read=PluginConfig.text)
TABLES: Final = Special(shape="path or URI", metavar="DIRECTORY|URI", read=PluginConfig.text)
