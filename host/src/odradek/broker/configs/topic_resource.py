"""TOPIC resources: the configuration of a topic's logs, and which of its replicas are throttled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from odradek.broker.broker import Broker
from odradek.broker.config_entry import NOT_A_LIST, ConfigEntry, ConfigSynonym
from odradek.broker.throttled_replicas import THROTTLED_REPLICAS
from odradek.broker.topics import Topic, check_name
from odradek.log.log_config import LogConfig
from odradek.settings.kinds import rendered
from odradek.settings.reading import by_key
from odradek.settings.setting import Setting
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ResourceType
from odradek.wire.error_code import ErrorCode

LOG_KEYS = by_key(LogConfig)
"""By the broker's key."""
KEYS = {each.own_key: each.of_resource() for _, each in (*LOG_KEYS.values(), *THROTTLED_REPLICAS.values())}
"""By the topic's key."""


class TopicResource:
    """All topics."""

    not_a_list = NOT_A_LIST

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Sequence[ConfigEntry]:
        """Every key of the log's configuration."""
        check_name(name)
        if broker.topics.named(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")  # Kafka sends no message here
        properties = broker.metadata.resource(ResourceType.TOPIC, name)
        return effective_entries(properties, broker)

    def listed(self, key: str, broker: Broker) -> Setting | None:
        """``cleanup.policy`` is a list; its default is Kafka's, even if the host has another."""
        return KEYS.get(key)

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check the name, the keys, then that the topic exists: Kafka's order."""
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_name(name)
        for key in after:
            if key not in KEYS:
                raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        config, topic = broker.topics.config_of(after), broker.topics.named(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        if topic.guard is not None:
            topic.guard.check_config(config)

    def limit(self, broker: Broker) -> None:
        """None: requests cannot add topics here."""

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Use the new configuration for the logs from the next append on."""
        topic = broker.topics.named(name)
        if topic is not None:
            reconfigure(topic, properties, broker)
            broker.topics.keys_changed(name, properties)


def reconfigure(topic: Topic, properties: Mapping[str, str], broker: Broker) -> None:
    """Configure a topic and its logs with its properties."""
    broker.topics.reconfigure(topic, broker.topics.config_of(properties))


def effective_entries(properties: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    """Return all keys of a topic that has these properties."""
    entries = [entry(name, properties, broker) for name in (*LOG_KEYS, *THROTTLED_REPLICAS)]
    return sorted(entries, key=lambda entry: entry.key.name)


def entry(broker_key: str, properties: Mapping[str, str], broker: Broker) -> ConfigEntry:
    """Describe one key with its values from all levels: the topic, its broker, all brokers, Kafka."""
    synonyms = broker.config.synonyms(broker_key)
    if broker_key in LOG_KEYS:
        field, declaration = LOG_KEYS[broker_key]
        value = declaration.text(getattr(broker.topics.defaults, field))
    else:
        _, declaration = THROTTLED_REPLICAS[broker_key]
        value = declaration.default_text
    key = KEYS[declaration.own_key]
    if key.name in properties:
        value = rendered(key.kind.type, properties[key.name])
        synonyms.insert(0, ConfigSynonym(key.name, value, ConfigSource.TOPIC))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(key=key, value=value, source=source, synonyms=synonyms)
