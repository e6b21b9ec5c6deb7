"""Gives the metrics of Kafka clients to Prometheus: by a listener for scrapes, and by remote write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

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
    from odradek_prometheus.remote_write.remote_write_settings import read_remote_write
    from odradek_prometheus.scrape_settings import read_exposition, read_scrape

    forwarders: dict[str, Forwarder] = {}
    settings = read_scrape(config)
    if settings is not None:
        from odradek_prometheus.scrape_forwarder import ScrapeForwarder

        exposition = Exposition(settings.exposition)
        forwarders["scrape"] = exposition.wrap(ScrapeForwarder(settings, exposition), settings.totals)
    remote = read_remote_write(config)
    if remote is not None:
        if (
            settings is not None
            and remote.totals.file
            and same_file(remote.totals.file, settings.totals.file)
        ):
            problem = "expected a file of its own, found that of the listener"
            raise config.error("remote_write.totals.file", problem)
        from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder

        # A marker after the last value ends a series: there is no scrape to wait for.
        exposition = Exposition(replace(read_exposition(config), linger_ms=0))
        user_agent = f"odradek-prometheus/{version('odradek-prometheus')}"
        forwarders["remote_write"] = RemoteWriteForwarder(remote, exposition, user_agent)
    return forwarders or None


def same_file(path: Path, other: Path | None) -> bool:
    return other is not None and path.resolve() == other.resolve()
