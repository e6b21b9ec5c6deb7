"""The settings of the listener for scrapes, and of names and labels, read from the plugin's table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from odradek.endpoints import (
    Address,
    ListenerTls,
    SecretKind,
    parsed_address,
    read_listener_tls,
    read_secret,
    read_token_file,
)
from odradek.plugin import PluginConfig
from odradek.settings import read_settings
from odradek.temporality import TotalsSettings, read_cumulative
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.apps import read_apps
from odradek_prometheus.client_labels import DEFAULT_SHOWN, INSTANCE
from odradek_prometheus.compatible_lag import ALIASES
from odradek_prometheus.exposition import LINGER_MS, ExpositionSettings

LISTENER: Final = "listener"
LOOPBACK: Final = "127.0.0.1"
PREFIX_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeSettings:
    """The listener for scrapes."""

    address: Address
    totals: TotalsSettings
    exposition: ExpositionSettings = field(default_factory=ExpositionSettings)
    tls: ListenerTls | None = None
    token_file: Path | None = None
    """With it a scraper needs one of its tokens."""
    basic_file: Path | None = None
    """With it a scraper needs its user and password."""
    utf8: bool = False
    """Names as the clients have them, for scrapers that take them."""
    created: bool = False
    """Show the start of each counter."""
    compatible: tuple[str, ...] = ()
    """The exporters whose names the lag of groups has as well."""
    connections_max: int = 64
    connections_max_per_ip: int = 32
    timeout_ms: int = 60_000
    """Time for one scrape, if the scraper does not tell its own."""


def read_scrape(config: PluginConfig) -> ScrapeSettings | None:
    """Read the keys of the listener; None without a listener.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    text = config.text(LISTENER)
    if text is None:
        return None
    tls = read_listener_tls(config, "tls.")
    linger_ms = config.integer("linger.ms", LINGER_MS, least=0, most=LINGER_MS)
    return ScrapeSettings(
        address=address_of(config, text, has_tls=tls is not None),
        totals=read_cumulative(config),
        exposition=replace(read_exposition(config), linger_ms=linger_ms),
        tls=tls,
        token_file=read_token_file(config, "token.file"),
        basic_file=read_secret(config, SecretKind.BASIC),
        utf8=config.choice("names", "escaped", ("escaped", "utf8")) == "utf8",
        created=config.boolean("created", default=False),
        compatible=read_compatible(config),
        connections_max=config.integer("connections.max", 64, least=1),
        connections_max_per_ip=config.integer("connections.max.per.ip", 32, least=1),
        timeout_ms=config.integer("timeout.ms", 60_000, least=1),
    )


def read_compatible(config: PluginConfig) -> tuple[str, ...]:
    """Read the names of other exporters of lag.

    Raises:
        ConfigError: One is not known.
    """
    found = config.texts("lag.compatible")
    for each in found:
        if each not in ALIASES:
            raise config.error("lag.compatible", f"expected some of {', '.join(ALIASES)}, found {each!r}")
    return tuple(dict.fromkeys(found))


def read_exposition(config: PluginConfig) -> ExpositionSettings:
    """Read the keys of names and labels, which all destinations have in common.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    prefix = config.text("prefix", "") or ""
    if not PREFIX_CHARACTERS.issuperset(prefix):
        raise config.error("prefix", f"expected letters, digits, _ and :, found {prefix!r}")
    labels = config.texts("labels", DEFAULT_SHOWN)
    if INSTANCE not in labels:
        raise config.error("labels", f"expected {INSTANCE} among them: it tells the series of clients apart")
    return ExpositionSettings(
        prefix=prefix,
        labels=tuple(labels),
        normalise_node=config.boolean("normalise.node", default=True),
        budgets=read_settings(BudgetLimits, config),
        apps=read_apps(config),
    )


def address_of(config: PluginConfig, text: str, *, has_tls: bool) -> Address:
    """The address in the URL of a listener.

    Raises:
        ConfigError: It is no http://HOST:PORT or https://HOST:PORT, or the certificates do not fit it.
    """
    parts = urlsplit(text)
    expected = f"expected http://HOST:PORT or https://HOST:PORT, found {text!r}"
    if parts.scheme not in ("http", "https") or parts.path not in ("", "/") or parts.query:
        raise config.error(LISTENER, expected)
    netloc = parts.netloc if not parts.netloc.startswith(":") else LOOPBACK + parts.netloc
    found = parsed_address(netloc)
    if found is None:
        raise config.error(LISTENER, expected)
    if (parts.scheme == "https") is not has_tls:
        problem = (
            "expected https:// with certificates" if has_tls else "expected tls.certificate for https://"
        )
        raise config.error(LISTENER, problem)
    return found
