"""Gives the metrics of Kafka clients to Prometheus, which scrapes them from a listener."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.plugin import Forwarder, PluginConfig, hookimpl


@hookimpl
def odradek_forwarder(config: PluginConfig) -> Forwarder | Mapping[str, Forwarder] | None:
    """Read the table; None if it has neither a listener nor a destination.

    Raises:
        ConfigError: A key has an invalid value; the error names it.
    """
    if not config.values:
        return None
    # Imported here, so that a host with an installed but unconfigured plugin does not pay for them.
    from odradek_prometheus.exposition import Exposition
    from odradek_prometheus.scrape_settings import read_scrape

    forwarders: dict[str, Forwarder] = {}
    settings = read_scrape(config)
    if settings is not None:
        from odradek_prometheus.scrape_forwarder import ScrapeForwarder

        exposition = Exposition(settings.exposition)
        forwarders["scrape"] = exposition.wrap(ScrapeForwarder(settings, exposition), settings.totals)
    return forwarders or None
