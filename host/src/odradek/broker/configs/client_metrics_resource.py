"""CLIENT_METRICS resources: each is a telemetry subscription (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym, rendered
from odradek.telemetry import client_metrics_configs
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode

KEYS = tuple(
    ConfigKey(name=key.name, type=key.type, default=key.default, documentation=key.documentation)
    for key in client_metrics_configs.CONFIG_KEYS
)


class ClientMetricsResource:
    """All subscriptions. A name that nobody set is a subscription with defaults only, which nobody gets."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """The three keys."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        properties = broker.metadata.resource(ResourceType.CLIENT_METRICS, name)
        return [entry(key, properties.get(key.name)) for key in KEYS]

    def type_of(self, key: str) -> ConfigType:
        """UNKNOWN, also for the two lists: Kafka does not let anyone append to them."""
        return ConfigType.UNKNOWN

    def default_of(self, key: str) -> str | None:
        """No list is changed item by item."""
        return None

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Telemetry knows what a subscription may be."""
        client_metrics_configs.validate(name, after, before)

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """The subscription is in force, or gone, from the next request of a client on."""
        broker.telemetry.update_subscription(name, properties)


def entry(key: ConfigKey, stored: str | None) -> ConfigEntry:
    """One key. A default has no synonyms, as in Kafka."""
    if stored is None:
        return ConfigEntry(key=key, value=key.default, source=ConfigSource.DEFAULT)
    value = rendered(key.type, stored)
    own = ConfigSynonym(key.name, value, ConfigSource.CLIENT_METRICS)
    return ConfigEntry(key=key, value=value, source=own.source, synonyms=[own])
