"""TOPIC resources: how the logs of a topic are kept, and which of its replicas are throttled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym, rendered
from odradek.broker.topic_config_keys import (
    THROTTLED_KEYS,
    TOPIC_CONFIG_KEYS,
    TYPES,
    TopicConfigKey,
)
from odradek.broker.topics import Topic, check_name
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode

DEFAULTS = {key.name: key.default for key in (*(row.key for row in TOPIC_CONFIG_KEYS), *THROTTLED_KEYS)}


class TopicResource:
    """All topics."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """Every key of the log's configuration."""
        check_name(name)
        if broker.topics.named(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")  # Kafka has no words for it here
        properties = broker.metadata.resource(ResourceType.TOPIC, name)
        return effective_entries(properties, broker)

    def type_of(self, key: str) -> ConfigType:
        """``cleanup.policy`` is a list."""
        return TYPES.get(key, ConfigType.UNKNOWN)

    def default_of(self, key: str) -> str | None:
        """Kafka's own default, whatever this host says to all topics."""
        return DEFAULTS.get(key)

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """The name, the keys, then whether the topic is there: Kafka's order."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_name(name)
        for key in after:
            if key not in TYPES:
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        broker.topics.config_of(after)
        if broker.topics.named(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """The logs go by the new configuration from the next append on."""
        topic = broker.topics.named(name)
        if topic is not None:
            reconfigure(topic, properties, broker)
            broker.topics.keys_changed(name, properties)


def reconfigure(topic: Topic, properties: Mapping[str, str], broker: Broker) -> None:
    """Give a topic and its logs the configuration that its properties mean."""
    broker.topics.reconfigure(topic, broker.topics.config_of(properties))


def effective_entries(properties: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    """All keys of a topic that has these properties."""
    of_logs = [entry(row, properties, broker) for row in TOPIC_CONFIG_KEYS]
    entries = of_logs + [replicas_entry(key, properties) for key in THROTTLED_KEYS]
    return sorted(entries, key=lambda entry: entry.key.name)


def entry(row: TopicConfigKey, properties: Mapping[str, str], broker: Broker) -> ConfigEntry:
    """One key with everything that stands behind it."""
    synonyms = list(synonyms_of(row, properties, broker))
    first = synonyms[0] if synonyms else ConfigSynonym(row.key.name, row.key.default, ConfigSource.DEFAULT)
    return ConfigEntry(key=row.key, value=first.value, source=first.source, synonyms=synonyms)


def replicas_entry(key: ConfigKey, properties: Mapping[str, str]) -> ConfigEntry:
    """One key that brokers have no default for."""
    if key.name not in properties:
        return ConfigEntry(key=key, value=key.default, source=ConfigSource.DEFAULT)
    value = rendered(key.type, properties[key.name])
    synonym = ConfigSynonym(key.name, value, ConfigSource.TOPIC)
    return ConfigEntry(key=key, value=value, source=ConfigSource.TOPIC, synonyms=[synonym])


def synonyms_of(
    row: TopicConfigKey, properties: Mapping[str, str], broker: Broker
) -> Iterator[ConfigSynonym]:
    """What the topic says, what was said to all topics, what Kafka says."""
    key = row.key
    if key.name in properties:
        yield ConfigSynonym(key.name, rendered(key.type, properties[key.name]), ConfigSource.TOPIC)
    yield from broker.log_defaults.synonyms(row)
