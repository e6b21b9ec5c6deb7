"""What can be configured: one object per resource type, each with its keys, its checks and its effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry
from odradek.broker.configs.broker_resource import BrokerResource
from odradek.broker.configs.client_metrics_resource import ClientMetricsResource
from odradek.broker.configs.group_resource import GroupResource
from odradek.broker.configs.topic_resource import TopicResource
from odradek.settings.setting import Setting
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode


class ConfigResource(Protocol):
    """All resources of one type."""

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Sequence[ConfigEntry]:
        """Every key of one resource.

        Args:
            name: Of the resource.
            broker: The broker that has it.
            asked: Keys that the client asked for by name; a broker has some only then.

        Raises:
            ApiError: There is no such resource.
        """

    def listed(self, key: str) -> Setting | None:
        """The declaration of a key whose items can be appended and subtracted if it is a list."""

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


LOGGERS = "the levels of loggers are not settings of this host: use odradek serve --log-level"


def resource_of(kind: int, unknown: str) -> ConfigResource:
    """Return what configures resources of this type.

    Args:
        kind: The number of the type.
        unknown: Kafka's words for a type that it does not know.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    resource = RESOURCES.get(kind)
    if resource is None:
        words = LOGGERS if kind == ResourceType.BROKER_LOGGER else unknown
        raise ApiError(ErrorCode.INVALID_REQUEST, words)
    return resource
