"""GROUP resources: settings of one group, which override the host's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_entry import NOT_A_LIST, ConfigEntry, ConfigSynonym
from odradek.group.group_properties import HOST_KEYS, validate
from odradek.settings.kinds import rendered
from odradek.settings.setting import Setting
from odradek.settings.state_limit import StateLimit
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode


class GroupResource:
    """All groups, even those that do not exist yet."""

    not_a_list = NOT_A_LIST

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Sequence[ConfigEntry]:
        """All keys."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        properties = broker.metadata.resource(ResourceType.GROUP, name)
        return [entry(key, properties.get(key.own_key), broker) for _, key in HOST_KEYS.values()]

    def listed(self, key: str, broker: Broker) -> Setting | None:
        """No key is a list."""
        return None

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check the name, then the rules of groups."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        validate(after, broker.groups.config)

    def limit(self, broker: Broker) -> StateLimit:
        """The number of groups with keys of their own."""
        return broker.groups.configs_limit

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Use the new configuration for each member from its next heartbeat on."""
        broker.groups.configure(name, properties)


def entry(host_key: Setting, stored: str | None, broker: Broker) -> ConfigEntry:
    """Describe one key with its values from all levels: the group, the host, Kafka."""
    key, synonyms = host_key.of_resource(), broker.config.synonyms(host_key.name)
    if stored is not None:
        synonyms.insert(0, ConfigSynonym(key.name, rendered(key.kind.type, stored), ConfigSource.GROUP))
    if not synonyms:  # the host has no such key
        return ConfigEntry(key=key, value=key.default_text, source=ConfigSource.DEFAULT, synonyms=[])
    return ConfigEntry(key=key, value=synonyms[0].value, source=synonyms[0].source, synonyms=synonyms)
