"""GROUP resources: what a group of the consumer protocol goes by in place of the host's keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym, rendered
from odradek.group.group_properties import GROUP_KEYS, GroupKey, validate
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode


class GroupResource:
    """All groups, also those that are not there yet."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """All keys."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        properties = broker.metadata.resource(ResourceType.GROUP, name)
        return [entry(key, properties.get(key.name), broker) for key in GROUP_KEYS.values()]

    def type_of(self, key: str) -> ConfigType:
        """No key is a list."""
        return ConfigType.UNKNOWN

    def default_of(self, key: str) -> str | None:
        """No list is changed item by item."""
        return None

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """The name, then what groups say."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        validate(after, broker.groups.config)

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Each member goes by it from its next heartbeat on."""
        broker.groups.configure(name, properties)


def entry(key: GroupKey, stored: str | None, broker: Broker) -> ConfigEntry:
    """One key with everything that stands behind it."""
    shown = ConfigKey(
        name=key.name, type=ConfigType.INT, default=str(key.default_ms), documentation=key.documentation
    )
    synonyms = list(synonyms_of(key, stored, broker))
    first = synonyms[0]
    return ConfigEntry(key=shown, value=first.value, source=first.source, synonyms=synonyms)


def synonyms_of(key: GroupKey, stored: str | None, broker: Broker) -> Iterator[ConfigSynonym]:
    """What is set on the group, what the host says, what Kafka says."""
    if stored is not None:
        yield ConfigSynonym(key.name, rendered(ConfigType.INT, stored), ConfigSource.GROUP)
    host_ms = key.value_ms(broker.groups.config)
    if host_ms != key.default_ms:
        yield ConfigSynonym(f"group.{key.name}", str(host_ms), ConfigSource.STATIC_BROKER)
    yield ConfigSynonym(f"group.{key.name}", str(key.default_ms), ConfigSource.DEFAULT)
