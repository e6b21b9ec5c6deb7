"""The resource types that can be configured, one object each, with its keys, checks and effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry
from odradek.broker.configs.broker_resource import BrokerResource
from odradek.broker.configs.client_metrics_resource import ClientMetricsResource
from odradek.broker.configs.group_resource import GroupResource
from odradek.broker.configs.topic_resource import TopicResource
from odradek.settings.setting import Setting
from odradek.settings.state_limit import StateLimit
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode


class ConfigResource(Protocol):
    """All resources of one type."""

    not_a_list: str
    """Kafka's words against appending to ``{key}`` and subtracting from it; ``{upper}`` or ``{lower}`` is the
    operation.
    """

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Iterable[ConfigEntry]:
        """Every key of one resource.

        Args:
            name: The name of the resource.
            broker: The broker that has it.
            asked: Keys that the client asked for by name; a broker shows some keys only if they are named.

        Raises:
            ApiError: There is no such resource. A generator raises it when it begins.
        """

    def listed(self, key: str, broker: Broker) -> Setting | None:
        """The declaration of a key whose items can be appended and subtracted if it is a list.

        Raises:
            ApiError: INVALID_CONFIG: the key is unknown, and Kafka has words for that.
        """

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check that the keys may change from ``before`` to ``after``, both complete sets.

        Raises:
            ApiError: They may not.
        """

    def limit(self, broker: Broker) -> StateLimit | None:
        """The limit on the number of resources with keys; None if requests cannot add resources."""

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Put a validated and stored set of keys in force."""


RESOURCES: Mapping[int, ConfigResource] = {
    ResourceType.TOPIC: TopicResource(),
    ResourceType.BROKER: BrokerResource(),
    ResourceType.CLIENT_METRICS: ClientMetricsResource(),
    ResourceType.GROUP: GroupResource(),
}


LOGGERS = "logger levels cannot be changed at run time on this host: start it with odradek serve --log-level"


def resource_of(kind: int, unknown: str) -> ConfigResource:
    """Return the object for resources of this type.

    Args:
        kind: The number of the type.
        unknown: Kafka's message for an unknown type.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    resource = RESOURCES.get(kind)
    if resource is None:
        words = LOGGERS if kind == ResourceType.BROKER_LOGGER else unknown
        raise ApiError(ErrorCode.INVALID_REQUEST, words)
    return resource
