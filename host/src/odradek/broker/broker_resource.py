"""BROKER resources: this node, and without a name what holds for all.

What topics go by where they do not say otherwise can be set at run time; the rest stands in the configuration
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from odradek.broker.broker import Broker
from odradek.broker.broker_config_keys import STATIC_KEYS, StaticKey, value_text
from odradek.broker.config_key import ConfigEntry, ConfigSynonym, rendered
from odradek.broker.log_defaults import LOG_DEFAULT_KEYS, LogDefaults
from odradek.broker.topic_config_keys import FALLBACKS, TopicConfigKey
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode


class BrokerResource:
    """This node."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """The node's keys; for the empty name what was set at run time on all nodes."""
        check_name(name, broker, "Broker", " or empty string")
        if not name:
            return list(cluster_entries(broker))
        own = [static_entry(row, broker) for row in STATIC_KEYS]
        return own + [dynamic_entry(row, broker.log_defaults) for row in LOG_DEFAULT_KEYS.values()]

    def type_of(self, key: str) -> ConfigType:
        """``log.cleanup.policy`` is a list that can be changed."""
        row = LOG_DEFAULT_KEYS.get(key)
        return ConfigType.UNKNOWN if row is None else row.key.type

    def default_of(self, key: str) -> str | None:
        """Kafka's own."""
        row = LOG_DEFAULT_KEYS.get(key)
        return None if row is None else row.key.default

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """The name, the keys, the values."""
        check_name(name, broker, "Node", "")
        fixed = [key for key in after if key not in LOG_DEFAULT_KEYS]
        if fixed:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            )
        present = broker.log_defaults
        changed = replace(present, node=after) if name else replace(present, cluster=after)
        changed.effective()

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """All topics go by it from the next append on."""
        broker.load_log_defaults()


def check_name(name: str, broker: Broker, what: str, otherwise: str) -> None:
    """A broker is named by its id, or not at all.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not name:
        return
    try:
        int(name)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {name}"
        ) from None
    expected = str(broker.settings.node_id)
    if name != expected:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected}{otherwise}, but received {name}",
        )


def static_entry(row: StaticKey, broker: Broker) -> ConfigEntry:
    """A setting, taken to stand in the configuration file when it differs from the default."""
    key, value = row.key, value_text(row.read(broker))
    synonyms = [ConfigSynonym(key.name, key.default, ConfigSource.DEFAULT)]
    if value != key.default:
        synonyms.insert(0, ConfigSynonym(key.name, value, ConfigSource.STATIC_BROKER))
    return ConfigEntry(key=key, value=value, source=synonyms[0].source, synonyms=synonyms, read_only=True)


def dynamic_entry(row: TopicConfigKey, defaults: LogDefaults) -> ConfigEntry:
    """A key of the logs. One that another key stands behind is null until it is set."""
    unset = None if row.broker_key in FALLBACKS else row.key.default
    key = replace(row.key, name=row.broker_key, default=unset)
    synonyms = list(defaults.synonyms(row))
    first = synonyms[0] if synonyms else ConfigSynonym(key.name, unset, ConfigSource.DEFAULT)
    return ConfigEntry(key=key, value=first.value, source=first.source, synonyms=synonyms)


def cluster_entries(broker: Broker) -> Iterator[ConfigEntry]:
    """What was set on all nodes."""
    for name, value in broker.metadata.resource(ResourceType.BROKER, "").items():
        row = LOG_DEFAULT_KEYS.get(name)
        if row is not None:
            shown = rendered(row.key.type, value)
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER
            yield ConfigEntry(
                key=replace(row.key, name=name),
                value=shown,
                source=source,
                synonyms=[ConfigSynonym(name, shown, source)],
            )
