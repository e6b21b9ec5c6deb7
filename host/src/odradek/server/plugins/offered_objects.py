"""The objects that plugins offered: registered where they are called, and closed at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import chain

from odradek.server.plugins.active_plugin import ActivePlugin
from odradek.server.plugins.offers import CLIENT_TELEMETRY, ENRICHER, FORWARDER
from odradek.telemetry.enrichers import Enrichers, try_enricher
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin

log = logging.getLogger(__name__)


def register(
    plugins: Sequence[ActivePlugin], receivers: ClientMetricsReceiverPlugin, enrichers: Enrichers
) -> None:
    """Register the receivers and enrichers of all plugins.

    Raises:
        ConfigError: One of them cannot be called as the host calls it, or labels are not text.
    """
    for plugin in plugins:
        for provider in plugin.offered(CLIENT_TELEMETRY):
            receivers.register(plugin.name, provider)
        for enricher in plugin.offered(ENRICHER):
            try_enricher(plugin.name, enricher)
            enrichers.register(plugin.name, enricher)


def close_offers(plugin: ActivePlugin) -> None:
    """Close the objects that a plugin offers, except forwarders: their runners close them."""
    for offer in chain.from_iterable(
        offers for hook, offers in plugin.offers.items() if hook != FORWARDER.name
    ):
        close = getattr(offer, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                log.exception("plugin cannot be closed", extra={"plugin": plugin.name})
