"""The settings of the listener for scrapes, and of names and labels, read from the plugin's table."""

from __future__ import annotations

from collections.abc import Sequence
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
from odradek.settings import INT, LONG, Choice, Flag, Items, Special, Whole, declare, read_settings
from odradek.temporality import TotalsSettings, read_cumulative
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.apps import read_apps
from odradek_prometheus.compatible_lag import ALIASES
from odradek_prometheus.exposition import LINGER_MS, ExpositionSettings

LISTENER: Final = "listener"
LOOPBACK: Final = "127.0.0.1"


def each_once(names: Sequence[str]) -> tuple[str, ...]:
    """The names without repetitions."""
    return tuple(dict.fromkeys(names))


def read_listener(config: PluginConfig, key: str) -> Address:
    """Read the address in the URL of a listener.

    Raises:
        ConfigError: It is no http://HOST:PORT or https://HOST:PORT, or the certificates do not fit it.
    """
    text = config.text(key) or ""
    parts = urlsplit(text)
    netloc = parts.netloc if not parts.netloc.startswith(":") else LOOPBACK + parts.netloc
    found = parsed_address(netloc)
    if found is None or parts.scheme not in ("http", "https") or parts.path not in ("", "/") or parts.query:
        raise config.error(key, f"expected http://HOST:PORT or https://HOST:PORT, found {text!r}")
    has_tls = config.value("tls.certificate") is not None
    if (parts.scheme == "https") is not has_tls:
        problem = (
            "expected https:// with certificates" if has_tls else "expected tls.certificate for https://"
        )
        raise config.error(key, problem)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeSettings:
    """The listener for scrapes."""

    totals: TotalsSettings = field(default_factory=TotalsSettings)
    exposition: ExpositionSettings = field(default_factory=ExpositionSettings)
    tls: ListenerTls | None = None
    basic_file: Path | None = None
    """With it a scraper needs its user and password."""
    # fmt: off
    address: Address = declare(
        LISTENER, Special(shape="`http://HOST:PORT` or `https://HOST:PORT`", read=read_listener),
        Address(LOOPBACK, 0), "Listener for scrapes; without a host on `127.0.0.1`.",
        unset="none: nothing is served",
    )
    token_file: Path | None = declare(
        "token.file", Special(shape="path of a file", read=read_token_file), None,
        "Bearer tokens, one a line, read for each scrape, of which a scraper needs one.",
        unset="none: no token is needed",
    )
    utf8: bool = declare(
        "names", Choice({"escaped": False, "utf8": True}), False,
        "`utf8`: names with dots, as the clients send them, for scrapers that take them (Prometheus 3).",
    )
    created: bool = declare(
        "created", Flag(), False,
        "Show when each total began, as `_created`. Switch it on only with the feature "
        "`created-timestamp-zero-ingestion` in Prometheus: without it these lines become series.",
    )
    compatible: Sequence[str] = declare(
        "lag.compatible", Items(tuple(ALIASES), collect=each_once), (),
        "Show [the lag of groups](../../host/docs/reference/lag-metrics.md) under the names of [other "
        "exporters](#names-of-other-exporters), too.", unset="none",
    )
    linger_ms: int = declare(
        "linger.ms", Whole(LONG, 0, LINGER_MS), LINGER_MS,
        "How long the series of a client stay after it has said goodbye, so that a scrape sees their last "
        "values.", unit="ms",
    )
    connections_max: int = declare(
        "connections.max", Whole(INT, 1), 64, "Limit of connections; further ones are closed.",
        unit="connections",
    )
    connections_max_per_ip: int = declare(
        "connections.max.per.ip", Whole(INT, 1), 32,
        "Limit of connections of one address, or one /64 of IPv6; raise it if a proxy brings all requests.",
        unit="connections",
    )
    timeout_ms: int = declare(
        "timeout.ms", Whole(LONG, 1), 60_000,
        "Time for making a page; a scraper that tells its own timeout gets 90 % of that.", unit="ms",
    )
    # fmt: on


def read_scrape(config: PluginConfig) -> ScrapeSettings | None:
    """Read the keys of the listener; None without a listener.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    if config.value(LISTENER) is None:
        return None
    tls = read_listener_tls(config, "tls.")
    found = read_settings(ScrapeSettings, config)
    return replace(
        found,
        tls=tls,
        basic_file=read_secret(config, SecretKind.BASIC),
        totals=read_cumulative(config),
        exposition=replace(read_exposition(config), linger_ms=found.linger_ms),
    )


def read_exposition(config: PluginConfig) -> ExpositionSettings:
    """Read the keys of names and labels, which all destinations have in common.

    Raises:
        ConfigError: A value is invalid; names the key.
    """
    found = read_settings(ExpositionSettings, config)
    return replace(found, budgets=read_settings(BudgetLimits, config), apps=read_apps(config))
