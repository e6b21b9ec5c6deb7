"""The subscriptions of the configuration file, beside those that were set over the network."""

from __future__ import annotations

import json
from collections.abc import Mapping

from odradek.metadata.store import MetadataStore
from odradek.plugin.config import ConfigError
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType

FROM_CONFIG = "subscriptions.from.config"
"""The host's own value that has the names of an earlier configuration, as JSON."""


def reconcile_subscriptions(
    wanted: Mapping[str, Mapping[str, str]], metadata: MetadataStore, telemetry: ClientMetricsManager
) -> None:
    """Store the subscriptions of the configuration, then load all stored subscriptions.

    Subscriptions of an earlier configuration that this one lacks are removed. Those that were set over the
    network stay.

    Raises:
        ConfigError: Kafka would refuse a subscription.
        ApiError: KAFKA_STORAGE_ERROR.
    """
    before = set(json.loads(metadata.value(FROM_CONFIG) or "[]"))
    subscriptions = telemetry.subscriptions
    stored = {
        name: metadata.resource(ResourceType.CLIENT_METRICS, name)
        for name in metadata.resource_names(ResourceType.CLIENT_METRICS)
        if name in wanted or name not in before
    }
    for name, known in stored.items():
        telemetry.update_subscription(name, known)
    for name, properties in wanted.items():
        try:
            subscriptions.check(name, properties, stored.get(name, {}))
            if name not in stored and properties:
                subscriptions.number_limit.check()
        except ApiError as error:
            raise ConfigError(f"subscriptions.{name}", error.message or error.code.name) from error
        subscriptions.release()
        telemetry.update_subscription(name, properties)
    with metadata.transaction():
        for name in before - wanted.keys():
            metadata.put_resource(ResourceType.CLIENT_METRICS, name, {})
        for name, properties in wanted.items():
            metadata.put_resource(ResourceType.CLIENT_METRICS, name, properties)
        metadata.put_value(FROM_CONFIG, json.dumps(sorted(wanted)))
