"""The objects that plugins offered: registered where they are called, and closed at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from threading import Thread

from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.offers import CLIENT_TELEMETRY, ENRICHER, FORWARDER
from odradek.plugin.config import ConfigError
from odradek.plugin.places import place_of
from odradek.plugin.plugin_stats import described
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
            try:
                receivers.register(plugin.name, provider)
            except ConfigError:
                raise
            except Exception as error:
                told = f"{type(provider).__name__} raised {described(error)}{place_of(error)}"
                raise ConfigError(f"plugins.{plugin.name}", f"{told}; return None to stay out") from error
        for enricher in plugin.offered(ENRICHER):
            try_enricher(plugin.name, enricher)
            enrichers.register(plugin.name, enricher)


def close_offers(plugin: ActivePlugin, timeout_s: float) -> None:
    """Close the objects that a plugin offers, except forwarders: their runners close them.

    Blocks. Each object has the time, and is left behind if it takes longer.
    """
    for offer in chain.from_iterable(
        offers for hook, offers in plugin.offers.items() if hook != FORWARDER.name
    ):
        close = getattr(offer, "close", None)
        if callable(close):
            name = f"odradek-close-{plugin.name}"
            closing = Thread(target=close_offer, args=(plugin.name, close), name=name, daemon=True)
            closing.start()
            closing.join(timeout_s)
            if closing.is_alive():
                log.error(
                    "plugin %s did not close in %g s, leaving it",
                    plugin.name,
                    timeout_s,
                    extra={"plugin": plugin.name},
                )


def close_offer(name: str, close: Callable[[], object]) -> None:
    """Close one object, on a thread of its own."""
    try:
        close()
    except BaseException as error:
        told = described(error) + place_of(error)
        log.exception("plugin %s cannot be closed: %s", name, told, extra={"plugin": name})
