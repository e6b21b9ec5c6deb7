"""CLIENT_METRICS resources: each is a telemetry subscription (KIP-714)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_entry import NOT_A_LIST, ConfigEntry, ConfigSynonym
from odradek.settings.kinds import rendered
from odradek.settings.setting import Setting
from odradek.settings.state_limit import StateLimit
from odradek.telemetry import client_metrics_configs
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode


class ClientMetricsResource:
    """All subscriptions. A name without properties has the defaults, and matches no client."""

    not_a_list = NOT_A_LIST

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Sequence[ConfigEntry]:
        """The three keys."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        properties = broker.metadata.resource(ResourceType.CLIENT_METRICS, name)
        return [entry(key, properties.get(key.name)) for key in client_metrics_configs.CONFIG_KEYS]

    def listed(self, key: str, broker: Broker) -> Setting | None:
        """None, even for the two lists: Kafka cannot append to them."""
        return None

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check the rules and limits. If the host follows a cluster, every change is refused."""
        if broker.followed_cluster is not None:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"this host follows the CLIENT_METRICS resources of {broker.followed_cluster}: change those",
            )
        broker.telemetry.subscriptions.check(name, after, before)

    def limit(self, broker: Broker) -> StateLimit:
        """The number of subscriptions."""
        return broker.telemetry.subscriptions.number_limit

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Use or remove the subscription from the next request of a client on."""
        broker.telemetry.update_subscription(name, properties)


def entry(key: Setting, stored: str | None) -> ConfigEntry:
    """Describe one key. A default has no synonyms, as in Kafka."""
    if stored is None:
        return ConfigEntry(key=key, value=key.default_text, source=ConfigSource.DEFAULT)
    value = rendered(key.kind.type, stored)
    own = ConfigSynonym(key.name, value, ConfigSource.CLIENT_METRICS)
    return ConfigEntry(key=key, value=value, source=own.source, synonyms=[own])
