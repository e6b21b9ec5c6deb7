"""What can be configured: one object per resource type, each with its keys, its checks and its effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry
from odradek.broker.configs.broker_resource import BrokerResource
from odradek.broker.configs.client_metrics_resource import ClientMetricsResource
from odradek.broker.configs.group_resource import GroupResource
from odradek.broker.configs.topic_resource import TopicResource
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode


class ConfigResource(Protocol):
    """All resources of one type."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """Every key of one resource, by name of the key.

        Raises:
            ApiError: There is no such resource.
        """

    def type_of(self, key: str) -> ConfigType:
        """How a key's value is written when a list is changed item by item; UNKNOWN for everything else."""

    def default_of(self, key: str) -> str | None:
        """What items are added to and taken from where nothing is set."""

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Whether the whole set of keys may be ``after``.

        Raises:
            ApiError: It may not.
        """

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Take over a set of keys that was validated and stored."""


RESOURCES: Mapping[int, ConfigResource] = {
    ResourceType.TOPIC: TopicResource(),
    ResourceType.BROKER: BrokerResource(),
    ResourceType.CLIENT_METRICS: ClientMetricsResource(),
    ResourceType.GROUP: GroupResource(),
}


def resource_of(kind: int) -> ConfigResource:
    """What configures resources of this type.

    Raises:
        ApiError: INVALID_REQUEST, Kafka's words for a change of a type it does not know.
    """
    resource = RESOURCES.get(kind)
    if resource is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return resource
