"""Removal of subscriptions whose lease has ended: the command that set them was killed."""

from __future__ import annotations

import logging
from typing import Final

from odradek.client.lease import is_over
from odradek.metadata.store import MetadataStore, StoreError
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.waiting.clock import Clock, Timer
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType

log = logging.getLogger(__name__)

EVERY_MS: Final = 15_000


def remove_ended(
    metadata: MetadataStore, telemetry: ClientMetricsManager, clock: Clock, timer: Timer
) -> None:
    """Delete subscriptions whose lease has ended, now and every 15 s."""
    try:
        for name in metadata.resource_names(ResourceType.CLIENT_METRICS):
            if is_over(name, clock.now_ms() / 1000):
                with metadata.transaction():
                    metadata.put_resource(ResourceType.CLIENT_METRICS, name, {})
                telemetry.update_subscription(name, {})
                log.info("deleted a subscription whose lease has ended", extra={"subscription": name})
    except (StoreError, ApiError) as error:
        log.warning("subscriptions whose lease has ended stay: %s", error)
    timer.schedule(clock.monotonic_ms() + EVERY_MS, lambda: remove_ended(metadata, telemetry, clock, timer))
